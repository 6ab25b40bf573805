#include "selfcheck.h"
#include <omp.h>
double f(const double *x, double *y, int n) {
  double s = 0;
  for (int turn = 0; turn < 2; turn++) {
#pragma omp parallel for if (turn) reduction(+ : s)
    for (int i = 0; i < n; i++) s += x[i] * x[i] * omp_get_level();
  }
  return s;
}
