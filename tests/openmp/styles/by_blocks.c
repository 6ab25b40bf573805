#include "../selfcheck.h"
#include <omp.h>
// Work by the number of the thread, barriers between steps; what comes out is the same for any number of threads.
double f(const double *x, double *y, int n) {
  double a[2][N];
  for (int i = 0; i < n; i++) a[0][i] = x[i];
#pragma omp parallel
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    int low = n * me / all, high = n * (me + 1) / all;
    for (int t = 0; t < 4; t++) {
      double *to = a[(t + 1) % 2], *from = a[t % 2];
      for (int i = low; i < high; i++) to[i] = 0.5 * from[i] + 0.25 * sin(from[(i + 1) % n]) * from[(i + n - 1) % n];
#pragma omp barrier
    }
    for (int i = low; i < high; i++) y[i] = a[0][i] * x[i];
  }
  double s = 0;
  for (int i = 0; i < n; i++) s += a[0][i];
  return s;
}
