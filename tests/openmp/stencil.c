#include "selfcheck.h"
#include <string.h>
double f(const double *x, double *y, int n) {
  double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
  memcpy(a, x, n * sizeof *a);
  memcpy(b, x, n * sizeof *b);
  for (int t = 0; t < 6; t++) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) b[i] = a[i] + 0.1 * (a[i - 1] - 2 * a[i] + a[i + 1]) * a[i];
    double *swap = a;
    a = b, b = swap;
  }
  memcpy(y, a, n * sizeof *y);
  free(a), free(b);
  return y[n / 2];
}
