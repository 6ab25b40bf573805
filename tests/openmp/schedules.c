#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
#pragma omp for schedule(static, 4)
    for (long i = n - 1; i >= 0; i--) y[i] = sin(y[i]);
#pragma omp for schedule(dynamic)
    for (unsigned i = 0; i < (unsigned)n; i += 2) y[i] *= x[i];
#pragma omp for schedule(dynamic, 3)
    for (unsigned long i = 1; i < (unsigned long)n; i += 2) y[i] += x[i];
#pragma omp for schedule(guided) nowait
    for (int i = 0; i < n; i++) y[i] = y[i] * y[i] + x[i];
#pragma omp for schedule(auto)
    for (int i = n; i > 0; i -= 3) y[i - 1] *= 2;
#pragma omp for schedule(runtime) reduction(+ : s)
    for (int i = 0; i < n; i++) s += exp(-y[i]);
  }
  return s;
}
