#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel for collapse(2) reduction(+ : s)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 5; j++) s += x[i] * sin(x[(i + j) % n] + j);
#pragma omp parallel for collapse(3) schedule(dynamic, 2)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 1; k < 2; k++) {
#pragma omp atomic
        y[i] += x[i] * (j + k);
      }
  return s;
}
