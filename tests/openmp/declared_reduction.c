#include "selfcheck.h"
typedef struct { double re, im; } pair;
static void times(pair *a, const pair *b) {
  double re = a->re * b->re - a->im * b->im;
  a->im = a->re * b->im + a->im * b->re, a->re = re;
}
#pragma omp declare reduction(times : pair : times(&omp_out, &omp_in)) initializer(omp_priv = (pair){1, 0})
double f(const double *x, double *y, int n) {
  pair p = {1, 0};
#pragma omp parallel for reduction(times : p)
  for (int i = 0; i < n; i++) {
    pair q = {cos(x[i]), 0.5 * x[i]};
    times(&p, &q);
  }
  return 1e-3 * p.re + 2e-3 * p.im;
}
