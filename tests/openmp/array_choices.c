#include "selfcheck.h"
typedef struct { double m, s; } weighed;
static weighed joined(weighed a, weighed b) {
  double m = fmax(a.m, b.m);
  return (weighed){m, a.s * exp(a.m - m) + b.s * exp(b.m - m)};
}
#pragma omp declare reduction(join : weighed : omp_out = joined(omp_out, omp_in)) initializer(omp_priv = (weighed){-1e30, 0})
double f(const double *x, double *y, int n) {
  double high[4] = {0.1, 0.1, 0.2, 0.1}, times[3] = {1, 1.1, 0.9};
  weighed all = {0.1, 1};
  #pragma omp parallel for reduction(max : high) reduction(* : times[:3]) reduction(join : all)
  for (int i = 0; i < n; i++) {
    double v = sin(x[i]) * exp(0.1 * cos(i * x[i]));
    y[i] = v;
    if (v > high[i % 4]) high[i % 4] = v;
    times[i % 3] *= 1 + 0.1 * v * v;
    all = joined(all, (weighed){v, 1});
  }
  return high[0] * high[1] + high[2] - high[3] + times[0] * times[1] * times[2] + all.m + log(all.s);
}
