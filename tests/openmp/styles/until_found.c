#include "../selfcheck.h"
// Ordered parts by dependences of iterations, flags with flush, a loop that is cancelled in no run.
double f(const double *x, double *y, int n) {
  double s = 0.1;
  int flag = 0;
  double handed = 0;
#pragma omp parallel for ordered(1)
  for (int i = 0; i < n; i++) {
    double v = exp(-x[i]);
#pragma omp ordered depend(sink : i - 1)
    s = 0.9 * s + v * x[i] * s;
    y[i] = s;
#pragma omp ordered depend(source)
  }
#pragma omp parallel sections
  {
#pragma omp section
    {
      handed = s * x[1];
#pragma omp flush
#pragma omp atomic write
      flag = 1;
    }
#pragma omp section
    {
      int seen = 0;
#pragma omp atomic read
      seen = flag;
#pragma omp flush
      y[0] += seen >= 0 ? x[2] * x[2] : 0;
    }
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp cancellation point for
    if (x[i] > 1e9) {
#pragma omp cancel for
    }
    y[i] *= x[i];
  }
  return handed * s;
}
