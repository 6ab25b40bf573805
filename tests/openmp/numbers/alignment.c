// A thread's array is aligned by 16 bytes and 24 bytes long.
#include <math.h>
#include <omp.h>
double f(const double *x, double *y, int n) {
  double part[8] = {0}, shared = 0.5, s = x[0];
#pragma omp parallel num_threads(5)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    double t = x[1] * (me + 1), own[3] = {x[me % n], 0.5, all};
#pragma omp barrier
    if (me != 0) {
      own[me % 3] = x[(all + 3) % n] * t;
      for (int j = me; j < n; j += all) t = t * 0.9 + 0.1 * sin(x[j] * (me % 2 ? x[0] : t));
    }
#pragma omp barrier
    t += shared * own[0];
    part[me] = t * own[1];
    y[me] = t;
  }
  for (int k = 0; k < 8; k++) s += part[k];
  return s;
}
