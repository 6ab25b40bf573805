#include "selfcheck.h"
static double total(const double *x, int n) {
  if (n == 1) return x[0] * x[0];
  double a, b;
#pragma omp task shared(a)
  a = total(x, n / 2);
#pragma omp task shared(b) if (n > 4)
  b = total(x + n / 2, n - n / 2);
#pragma omp taskwait
  return a + b + 0.1 * a * b;
}
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel
#pragma omp single
  {
    s = total(x, n);
    for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) depend(out : y[i])
      y[i] = x[i] * s;
#pragma omp task depend(in : y[i]) depend(inout : y[0])
      y[0] += 0.01 * y[i] * y[i];
    }
  }
  return s;
}
