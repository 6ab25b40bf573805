#include <math.h>
#include <stdlib.h>
void dpotrf_(const char *, const int *, double *, const int *, int *);
void dtrsv_(const char *, const char *, const char *, const int *, const double *, const int *, double *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);

/* log density of y under a Gaussian process: K_ij = s^2 exp(-(x_i - x_j)^2 / (2 l^2)) + t^2 (i == j); p = log (s, l, t) */
double gaussian(int n, const double *p, const double *x, const double *y) {
  const double s2 = exp(2 * p[0]), w = 0.5 * exp(-2 * p[1]), t2 = exp(2 * p[2]);
  const int one = 1;
  double *k = malloc((size_t)n * n * sizeof *k), *z = malloc(n * sizeof *z);
  int info;
  for (int j = 0; j < n; j++) {
    z[j] = y[j];
    for (int i = j; i < n; i++) {
      const double d = x[i] - x[j];
      k[i + (size_t)j * n] = s2 * exp(-w * d * d);
    }
    k[j + (size_t)j * n] += t2;
  }
  dpotrf_("L", &n, k, &n, &info);
  dtrsv_("L", "N", "N", &n, k, &n, z, &one);
  double total = ddot_(&n, z, &one, z, &one);
  for (int j = 0; j < n; j++) total += 2 * log(k[j + (size_t)j * n]);
  free(k);
  free(z);
  return -0.5 * (total + n * log(2 * 3.14159265358979323846));
}
