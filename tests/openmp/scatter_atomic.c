#include "selfcheck.h"
double f(const double *x, double *y, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    int at = (5 * i * i + 1) % n;
#pragma omp atomic
    y[at] += x[i] * x[i];
  }
  return y[1];
}
