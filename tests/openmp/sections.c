#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double a = 0, b = 0, c = 0, last = 0;
#pragma omp parallel sections lastprivate(last)
  {
#pragma omp section
    for (int i = 0; i < n; i++) a += x[i] * x[i];
#pragma omp section
    for (int i = 0; i < n; i++) b += exp(-x[i]);
#pragma omp section
    {
      for (int i = 0; i < n; i++) c += sin(x[i]);
      last = x[0] * x[n - 1];
    }
  }
  return a * b + c + last;
}
