#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0, t = 1, seen = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = x[i] * x[i];
#pragma omp atomic
    s += v;
#pragma omp atomic update
    t *= 1.01;
#pragma omp critical
    y[i % 3] += sin(v);
#pragma omp critical(named)
    {
      seen = seen > v ? seen : v;
    }
#pragma omp atomic
    y[n - 1] += v * x[(i + 1) % n];
  }
  double got;
#pragma omp atomic read
  got = s;
#pragma omp atomic write
  t = got * 2;
#pragma omp atomic capture
  got = s += x[0];
  return s * t + seen + got;
}
