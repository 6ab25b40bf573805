#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double scale = 0, shift = 0, own;
#pragma omp parallel private(own)
  {
#pragma omp single copyprivate(own)
    own = x[1] * x[2];
#pragma omp single
    for (int i = 0; i < n; i++) scale += x[i] * own;
#pragma omp master
    shift = x[0] * x[0];
#pragma omp barrier
#pragma omp for
    for (int i = 0; i < n; i++) y[i] = scale * x[i] + shift;
#pragma omp masked
    y[0] *= 2;
  }
  return scale;
}
