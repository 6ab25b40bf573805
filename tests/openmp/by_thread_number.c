#include "selfcheck.h"
#include <omp.h>
double f(const double *x, double *y, int n) {
  int most = omp_get_max_threads();
  double *part = calloc(most, sizeof *part), s = 0;
#pragma omp parallel num_threads(most)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    for (int i = me * n / all; i < (me + 1) * n / all; i++) {
      part[me] += x[i] * x[i];
      y[i] = x[i] * part[me];
    }
  }
  for (int k = 0; k < most; k++) s += part[k];
  free(part);
  return s;
}
