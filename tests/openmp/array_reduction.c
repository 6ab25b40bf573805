#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double bins[4] = {0}, s = 0;
#pragma omp parallel for reduction(+ : bins[ : 4])
  for (int i = 0; i < n; i++) bins[(3 * i) % 4] += x[i] * x[i];
#pragma omp parallel for reduction(+ : y[ : n])
  for (int i = 0; i < n; i++) y[(7 * i) % n] += sin(x[i]);
  for (int k = 0; k < 4; k++) s += bins[k] * bins[k];
  return s;
}
