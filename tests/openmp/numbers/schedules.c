/* dynamic loop in a region that asks, nested region, num_threads at run time */
#include <omp.h>
#include <math.h>
double f(const double *x, double *y, int n) {
  double s = 0; int most = 2 + n % 3, inner = 0;
#pragma omp parallel num_threads(most)
  {
    int all = omp_get_num_threads();
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < n; i++) y[i] = sin(x[i]) * all;
#pragma omp for schedule(guided) reduction(+:s)
    for (int i = 0; i < n; i++) s += y[i] * y[i];
    double t = 0;
#pragma omp parallel reduction(+:t)
    t += omp_get_num_threads() * x[1];
    if (omp_get_thread_num() == all - 1) {
#pragma omp atomic
 s += t; }
#pragma omp masked filter(1)
    inner = omp_in_parallel() * all + omp_get_thread_num();
  }
  return s + inner + omp_in_parallel();
}
