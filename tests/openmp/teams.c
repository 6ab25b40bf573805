#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp teams distribute parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
#pragma omp target teams distribute parallel for map(tofrom : y[ : n]) map(to : x[ : n])
  for (int i = 0; i < n; i++) y[i] = sin(x[i]);
#pragma omp parallel loop
  for (int i = 0; i < n; i++) y[i] *= x[i];
  return s;
}
