/* qsort with a comparator over structs, bsearch, static dispatch tables, long double sums, complex */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
struct event { double time; int kind; double amount; };
static int by_time(const void *a, const void *b) {
  double d = ((const struct event *)a)->time - ((const struct event *)b)->time;
  return (d > 0) - (d < 0);
}
static double gain(double s, double v) { return s + v; }
static double decay(double s, double v) { return s * exp(-v); }
static double clip(double s, double v) { return s > 4 * v ? 4 * v + 0.1 * s : s; }
static double (*const table[])(double, double) = {gain, decay, clip};
static long double careful(const double *v, long n) {
  long double s = 0, c = 0;
  for (long i = 0; i < n; i++) { long double y = v[i] - c, t = s + y; c = (t - s) - y; s = t; }
  return s;
}
double loss(const double *x, long n) {
  struct event *e = malloc(2 * n * sizeof *e);
  for (long i = 0; i < 2 * n; i++) { e[i].time = x[i % n] * (1 + i / n * 0.37) + 0.01 * i; e[i].kind = i % 3; e[i].amount = x[(i + 2) % n]; }
  qsort(e, 2 * n, sizeof *e, by_time);
  double s = 1, last = 0, v[32];
  for (long i = 0; i < 2 * n; i++) { s = table[e[i].kind](s, e[i].amount) + 0.1 * (e[i].time - last); last = e[i].time; v[i] = s; }
  double complex z = 0.3 + 0.2 * I;
  for (long i = 0; i < n; i++) z = z * z * 0.5 + x[i] * I + cexp(-z);
  struct event key = {e[3].time, 0, 0}, *hit = bsearch(&key, e, 2 * n, sizeof *e, by_time);
  double r = (double)careful(v, 2 * n) + creal(z) * cimag(z) + cabs(z) + (hit ? hit->amount : 0);
  free(e);
  return r;
}
