#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double b[N];
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < n; i++) y[i] = x[i];
    for (int t = 0; t < 4; t++) {
#pragma omp for
      for (int i = 0; i < n; i++) b[i] = sin(y[i]) + 0.2 * y[(i + 1) % n];
#pragma omp for
      for (int i = 0; i < n; i++) y[i] = b[i];
    }
  }
  return y[0] * y[1];
}
