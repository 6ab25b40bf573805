#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double e = 0;
#pragma omp parallel for reduction(+ : e) schedule(dynamic, 2)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) {
      double d = x[i] - x[j] + 0.05 * (i - j);
      e -= 1 / sqrt(0.1 + d * d);
    }
  return e;
}
