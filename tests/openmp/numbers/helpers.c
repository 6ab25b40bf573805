/* orphaned worksharing and helper that asks */
#include <omp.h>
#include <math.h>
static double weight(double a) { return a * (1 + omp_get_thread_num()) + omp_get_num_threads(); }
static void fill(const double *x, double *y, int n) {
#pragma omp for
  for (int i = 0; i < n; i++) y[i] = weight(x[i]) * x[i];
}
static void turn(double *y, int n) {
  double keep = y[(omp_get_thread_num() * 7 + 3) % n];
#pragma omp barrier
#pragma omp for schedule(static, 1) nowait
  for (int i = 0; i < n; i++) y[i] = y[i] * 0.5 + keep;
}
double f(const double *x, double *y, int n) {
#pragma omp parallel num_threads(3)
  {
    fill(x, y, n);
    for (int k = 0; k < 3; k++) { turn(y, n);
#pragma omp barrier
    }
  }
  double s = weight(0.5);
  for (int i = 0; i < n; i++) s += y[i];
  return s;
}
