#include "selfcheck.h"
#pragma omp declare simd
static double cell(double v) { return v * exp(-v * v); }
double f(const double *x, double *y, int n) {
  double s = 0;
  int step = 0;
#pragma omp simd reduction(+ : s) linear(step : 2) safelen(8)
  for (int i = 0; i < n; i++) {
    s += cell(x[i]) * step;
    step += 2;
  }
#pragma omp parallel for simd
  for (int i = 0; i < n; i++) y[i] = cell(x[i]);
#pragma omp for simd
  for (int i = 0; i < n; i++) y[i] *= x[i];
  return s;
}
