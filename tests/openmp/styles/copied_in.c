#include "../selfcheck.h"
// Memory of threads: copied in, and from one thread to all.
static double scale;
#pragma omp threadprivate(scale)
double f(const double *x, double *y, int n) {
  double s = 0, shift;
  scale = x[0] * 2;
#pragma omp parallel copyin(scale) private(shift) reduction(+ : s)
  {
#pragma omp single copyprivate(shift)
    shift = x[1] * x[2];
    scale = scale + shift;
#pragma omp for
    for (int i = 0; i < n; i++) {
      y[i] = scale * sin(x[i]) + shift;
      s += y[i] * y[i];
    }
  }
  return s;
}
