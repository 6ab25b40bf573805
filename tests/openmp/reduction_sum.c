#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) {
    y[i] = x[i] * x[i];
    s += y[i] * sin(x[i]);
  }
  return s;
}
