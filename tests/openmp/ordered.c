#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double run = 1;
#pragma omp parallel for ordered schedule(dynamic)
  for (int i = 0; i < n; i++) {
    double v = sin(x[i]);
#pragma omp ordered
    {
      run = 0.5 * run + v;
      y[i] = run * run;
    }
  }
#pragma omp parallel for ordered(1)
  for (int i = 1; i < n; i++) {
#pragma omp ordered depend(sink : i - 1)
    y[i] += 0.3 * y[i - 1];
#pragma omp ordered depend(source)
  }
  return run;
}
