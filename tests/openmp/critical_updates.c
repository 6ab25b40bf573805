#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double h[8] = {0}, s = 0;
  #pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = sin(x[i]) * x[i];
    #pragma omp critical
    { h[(i * 5) % 8] += v; h[i % 3] = h[i % 3] + 2 * v; y[(i * 7) % n] += v * v; }
    #pragma omp critical(two)
    { s = s - v; }
  }
  for (int j = 0; j < 8; j++) s += h[j] * h[j];
  return s;
}
