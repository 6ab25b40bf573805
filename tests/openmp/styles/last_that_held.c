#include "../selfcheck.h"
// What the last iteration that assigned a variable left in it; sections that do as well.
double f(const double *x, double *y, int n) {
  double last = 0, part = 0, other = 0;
#pragma omp parallel for lastprivate(conditional : last)
  for (int i = 0; i < n; i++) {
    if (x[i] < 0.9) last = x[i] * x[i] * sin(x[i]);
    y[i] = x[i];
  }
#pragma omp parallel sections lastprivate(part) reduction(+ : other)
  {
#pragma omp section
    { part = x[0]; other += x[1] * x[2]; }
#pragma omp section
    { part = x[3] * x[4]; other += exp(-x[5]); }
#pragma omp section
    { part = sin(x[6]) * other + x[7]; other += x[8]; }
  }
  return last * (part + other * other);
}
