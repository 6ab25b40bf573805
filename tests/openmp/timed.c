#include "selfcheck.h"
#include <omp.h>
double f(const double *x, double *y, int n) {
  double start = omp_get_wtime(), s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) s += cosh(x[i]);
  double took = omp_get_wtime() - start;
  return took < 0 || omp_get_wtick() > 1 || omp_get_num_procs() < 1 ? 1e9 : s;
}
