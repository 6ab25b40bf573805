#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double run = 0, before = 0;
#pragma omp parallel for reduction(inscan, + : run)
  for (int i = 0; i < n; i++) {
    run += x[i] * x[i];
#pragma omp scan inclusive(run)
    y[i] = run * x[i];
  }
#pragma omp parallel for reduction(inscan, + : before)
  for (int i = 0; i < n; i++) {
    y[i] += before * before;
#pragma omp scan exclusive(before)
    before += sin(x[i]);
  }
  return run + before;
}
