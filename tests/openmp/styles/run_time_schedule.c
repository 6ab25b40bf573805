#include "../selfcheck.h"
#include <omp.h>
// The schedule is that of OMP_SCHEDULE or of a call; loops with linear variables and lanes.
double f(const double *x, double *y, int n) {
  double s = 0, t = 0;
  int k = 0;
  omp_set_schedule(omp_sched_guided, 3);
#pragma omp parallel for schedule(runtime) reduction(+ : s) lastprivate(t)
  for (int i = 0; i < n; i++) {
    t = x[i] * exp(-x[i]);
    s += t;
  }
#pragma omp parallel for simd linear(k : 2) reduction(max : t)
  for (int i = 0; i < n; i++) {
    y[i] = x[(k + 1) % n] * x[i];
    t = fmax(t, y[i]);
    k += 2;
  }
#pragma omp simd reduction(+ : s) simdlen(4)
  for (int i = 0; i < n; i++) s += sqrt(x[i]);
  return s * t + k;
}
