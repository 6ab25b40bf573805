#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp tile sizes(4)
  for (int i = 0; i < n; i++) s += x[i] * sin(x[i]);
#pragma omp parallel for reduction(+ : s)
#pragma omp unroll partial(3)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
