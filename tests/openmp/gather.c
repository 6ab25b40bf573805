#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  int at[N];
  for (int i = 0; i < n; i++) at[i] = (7 * i * i + 3) % n;
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = x[at[i]] * x[at[(i + 1) % n]];
  return 0;
}
