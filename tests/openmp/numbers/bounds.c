/* levels, team sizes, bounds of all kinds, chunks, steps downwards, collapse */
#include <omp.h>
double f(const double *x, double *y, int n) {
  double s = 0;
#pragma omp parallel num_threads(3)
  {
    double t = 0; int me = omp_get_thread_num();
    long asked = omp_get_level() + 10 * omp_get_team_size(1) + 100 * omp_get_ancestor_thread_num(1) + 1000 * omp_get_team_size(0) + 10000 * omp_get_active_level() + omp_get_team_size(2);
#pragma omp for nowait schedule(static, 4)
    for (unsigned i = 0; i < (unsigned)n; i += 2) y[i] = x[i] * (me + 1);
#pragma omp for nowait schedule(static)
    for (long long i = n - 1; i > 0; i -= 3) t += x[i] * (me + 2);
#pragma omp for nowait schedule(static, 2)
    for (unsigned long i = 1; i < (unsigned long)n; i += 2) y[i] = x[i] * x[i] * (me + 1);
#pragma omp for nowait schedule(static, 1)
    for (int i = n; i >= 1; i -= 2) t += x[i - 1] * (me + 3);
#pragma omp for collapse(2) nowait
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 5; j++) t += x[i * j] * x[j] * (me * 10 + 1);
#pragma omp for nowait
    for (int i = 0; i < 2; i++) t += x[i] * me;
#pragma omp for nowait
    for (int i = 5; i < 5; i++) t += 1e9;
#pragma omp barrier
#pragma omp critical
    s += t * asked;
    y[me] += asked;
  }
  return s + omp_get_level() + omp_get_team_size(0) * 7;
}
