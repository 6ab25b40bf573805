/* time loop in the region, halo exchange by thread, while loop with shared flag */
#include <omp.h>
#include <math.h>
#include <string.h>
double f(const double *x, double *y, int n) {
  double a[64], b[64], change = 1; int steps = 0;
  memcpy(a, x, n * sizeof *a); memcpy(b, x, n * sizeof *b);
  omp_set_num_threads(4);
#pragma omp parallel
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    int lo = me * n / all, hi = (me + 1) * n / all;
    double *u = a, *v = b;
    while (change > 0.05 && steps < 6) {
      for (int i = lo; i < hi; i++) v[i] = 0.25 * (u[(i + n - 1) % n] + 2 * u[i] + u[(i + 1) % n]) + 0.01 * me;
#pragma omp barrier
#pragma omp master
      { change = 0; for (int i = 0; i < n; i++) change += fabs(v[i] - u[i]); steps++; }
#pragma omp barrier
      double *t = u; u = v; v = t;
    }
#pragma omp single
    for (int i = 0; i < n; i++) y[i] = u[i] * u[i];
  }
  return change;
}
