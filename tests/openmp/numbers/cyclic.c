/* cyclic, partial sums by thread */
#include <omp.h>
#include <math.h>
#include <stdlib.h>
double f(const double *x, double *y, int n) {
  int most = omp_get_max_threads();
  double *part = calloc(most, sizeof *part), s = 0;
#pragma omp parallel
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    for (int i = me; i < n; i += all) { part[me] += x[i] * x[i]; y[i] = x[i] * part[me]; }
  }
  for (int k = 0; k < most; k++) s += part[k] * (k + 1);
  free(part);
  return s;
}
