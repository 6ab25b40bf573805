#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double out = 0;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = 0; j < n; j++) s += sin(0.3 * i + 0.7 * j) * x[j];
    y[i] = s;
  }
#pragma omp parallel for reduction(+ : out)
  for (int i = 0; i < n; i++) out += y[i] * y[i];
  return out;
}
