/* replicated region, reduction over threads, atomic */
#include <omp.h>
#include <math.h>
double f(const double *x, double *y, int n) {
  double s = 0, p = 1; int count = 0;
#pragma omp parallel reduction(+:s) num_threads(5)
  s += x[0] * sin(x[1]);
#pragma omp parallel num_threads(4)
  {
#pragma omp atomic
    count += 1;
#pragma omp critical
    p *= 1 + x[2] * 0.1;
  }
  return s * count + p;
}
