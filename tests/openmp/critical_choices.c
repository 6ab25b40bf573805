#include "selfcheck.h"
struct cells { double *h; long count; };
double f(const double *x, double *y, int n) {
  double h[6] = {0}, best = -1e9, product = 1;
  long at = 0, kept = 0;
  struct cells its = {h, 0}, *c = &its;
  #pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = sin(x[i]) * exp(-0.1 * x[i] * i), w = cos(v) * v;
    #pragma omp critical
    if (v > best) { best = v; at = i; }
    #pragma omp atomic
    product *= 1 + 0.1 * w;
    if (w > 0.3) {
      #pragma omp critical(cells)
      { c->count++; c->h[i % 6] = fmax(c->h[i % 6], w); }
    }
    long k;
    #pragma omp atomic capture
    k = kept++;
    y[k] = v * w;
  }
  return best * x[at] + product + 0.01 * its.count * h[0] + h[1] * h[2] + y[3] * y[5] + kept;
}
