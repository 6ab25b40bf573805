/* two-pass parallel prefix sum with barriers and single */
#include <omp.h>
#include <math.h>
#include <stdlib.h>
double f(const double *x, double *y, int n) {
  double *sums = 0; double out = 0;
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
    { sums = calloc(all + 1, sizeof *sums); }
    double s = 0;
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) { s += sin(x[i]); y[i] = s; }
    sums[me + 1] = s;
#pragma omp barrier
    double offset = 0;
    for (int k = 0; k <= me; k++) offset += sums[k];
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) y[i] += offset * x[i];
#pragma omp single
    free(sums);
#pragma omp critical
    out += offset * offset;
  }
  return out;
}
