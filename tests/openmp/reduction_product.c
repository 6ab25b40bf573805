#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double p = 1, d = 0;
#pragma omp parallel for reduction(* : p) reduction(- : d) schedule(static, 3)
  for (int i = 0; i < n; i++) {
    p *= 1 + 0.1 * x[i];
    d -= exp(-x[i]);
  }
  return p + d;
}
