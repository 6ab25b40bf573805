/* Arrays whose length is an argument, arrays of arrays, complex numbers, pointers to the middle. */
#include <complex.h>
#include <math.h>
static double norm(int n, int m, const double a[n][m]) { double s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s += a[i][j] * a[i][j] * (i + 2 * j); return s; }
double loss(const double *x, long n) {
  double a[n][3], flat[3 * n], *middle = &flat[n];
  for (int i = 0; i < n; i++) for (int j = 0; j < 3; j++) a[i][j] = x[i] * (j + 1);
  for (long k = -n; k < 2 * n; k++) middle[k] = x[(k + n) % n] * k;
  double complex z = 1 + 0.5 * I;
  for (int i = 0; i < n; i++) z = z * (x[i] + 0.3 * I) + a[i][1];
  double s = norm((int)n, 3, a);
  for (double *p = flat, *end = flat + 3 * n; p != end; ++p) s += *p * 0.1;
  return s + creal(z) * cimag(z);
}
