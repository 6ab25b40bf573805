#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0, p = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(4)
    for (int i = 0; i < n; i++) y[i] = exp(-x[i]) * x[i];
#pragma omp taskgroup task_reduction(+ : s)
    {
      for (int i = 0; i < n; i++) {
#pragma omp task in_reduction(+ : s) untied
        s += y[i] * y[i];
      }
    }
#pragma omp taskloop reduction(+ : p)
    for (int i = 0; i < n; i++) p += sin(y[i]);
#pragma omp taskyield
  }
  return s + p;
}
