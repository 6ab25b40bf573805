#include "selfcheck.h"
static double kept = 2;
#pragma omp threadprivate(kept)
double f(const double *x, double *y, int n) {
  double first = x[0] * x[1], last = 0, own;
  kept = x[2];
#pragma omp parallel copyin(kept)
#pragma omp for private(own) firstprivate(first) lastprivate(last)
  for (int i = 0; i < n; i++) {
    own = x[i] * first;
    last = own * own;
    y[i] = own + last * kept;
  }
  return last;
}
