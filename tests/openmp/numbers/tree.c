/* tree reduction over threads, private arrays, lastprivate, firstprivate, sections */
#include <omp.h>
#include <math.h>
double f(const double *x, double *y, int n) {
  double part[8] = {0}, last = 0, w = x[0];
#pragma omp parallel num_threads(6) firstprivate(w)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    double own[5];
    for (int k = 0; k < 5; k++) own[k] = x[(me + k) % n] * (k + 1);
    w += me;
#pragma omp for lastprivate(last)
    for (int i = 0; i < n; i++) { last = x[i] * w; y[i] = last * own[i % 5]; }
    part[me] = own[0] * own[4] + w;
    for (int d = 1; d < all; d *= 2) {
#pragma omp barrier
      double got = me % (2 * d) == 0 && me + d < all ? part[me + d] : 0;
      if (me % (2 * d) == 0) part[me] += got * 0.9;
    }
#pragma omp sections
    {
#pragma omp section
      y[0] += part[1];
#pragma omp section
      y[1] += part[2];
    }
  }
  return part[0] + last;
}
