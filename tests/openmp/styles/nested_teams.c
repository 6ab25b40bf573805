#include "../selfcheck.h"
#include <omp.h>
// A region in a region, with shared sums of each.
static double row(const double *x, int n, double w) {
  double s = 0;
#pragma omp parallel for reduction(+ : s) num_threads(2)
  for (int j = 0; j < n; j++) s += sin(w * x[j]) * x[j];
  return s;
}
double f(const double *x, double *y, int n) {
  double all = 1;
  omp_set_max_active_levels(2);
#pragma omp parallel for reduction(* : all) num_threads(2) schedule(static, 2)
  for (int i = 0; i < n; i++) {
    double r = row(x, n, x[i]);
    y[i] = r * r;
    all *= 1 + 0.01 * r;
  }
  return all;
}
