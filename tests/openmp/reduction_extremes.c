#include "selfcheck.h"
double f(const double *x, double *y, int n) {
  double low = 1e300, high = -1e300;
  int every = 1, some = 0, bits = 0, common = -1, odd = 0;
#pragma omp parallel for reduction(min : low) reduction(max : high) reduction(&& : every) reduction(|| : some) \
    reduction(| : bits) reduction(& : common) reduction(^ : odd)
  for (int i = 0; i < n; i++) {
    double v = x[i] * cos(0.1 * i);
    low = v < low ? v : low;
    high = v > high ? v : high;
    every = every && x[i] < 5;
    some = some || x[i] > 1;
    bits |= i, common &= i | 64, odd ^= i;
  }
  return low * high + every + 2 * some + bits + common + odd * low;
}
