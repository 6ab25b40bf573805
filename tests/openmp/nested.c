#include "selfcheck.h"
#include <omp.h>
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel for reduction(+ : s) num_threads(2)
  for (int i = 0; i < 3; i++) {
    double t = 0;
#pragma omp parallel for reduction(+ : t)
    for (int j = 0; j < n; j++) t += x[j] * sin(x[i] * j);
    s += t * x[i] * omp_get_level();
  }
  if (omp_get_level() != 0 || omp_in_parallel()) return 1e9;
  return s;
}
