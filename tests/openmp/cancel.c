#include "selfcheck.h"
double f(const double *x, double *y, int n) {
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < n; i++) {
      y[i] = x[i] * x[i];
#pragma omp cancel for if (x[i] > 100)
#pragma omp cancellation point for
    }
  }
  return 0;
}
