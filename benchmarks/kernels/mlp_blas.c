#include <math.h>
#include <stdlib.h>
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

/* mean square error of y = w3 tanh(w2 tanh(w1 x)): `in` inputs, two layers of h, `out` outputs, m samples (rows) */
double mlp(int m, int in, int h, int out, const double *w1, const double *w2, const double *w3, const double *x,
           const double *y) {
  double *a = malloc((size_t)m * h * sizeof *a), *b = malloc((size_t)m * h * sizeof *b);
  double *c = malloc((size_t)m * out * sizeof *c), total = 0;
  cblas_dgemm(101, 111, 112, m, h, in, 1.0, x, in, w1, in, 0.0, a, h);
  for (long i = 0; i < (long)m * h; i++) a[i] = tanh(a[i]);
  cblas_dgemm(101, 111, 112, m, h, h, 1.0, a, h, w2, h, 0.0, b, h);
  for (long i = 0; i < (long)m * h; i++) b[i] = tanh(b[i]);
  cblas_dgemm(101, 111, 112, m, out, h, 1.0, b, h, w3, h, 0.0, c, out);
  for (long i = 0; i < (long)m * out; i++) total += (c[i] - y[i]) * (c[i] - y[i]);
  free(a);
  free(b);
  free(c);
  return total / m;
}
