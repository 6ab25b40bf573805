/* A decomposition in one struct: matrices by rows and columns, values that are sorted from their end on, and behind
   them flags, of which the compiler sets four at once. */
#include <stdbool.h>
#include <string.h>
typedef struct {
  double u[9], v[9], values[3]; int info; bool ready, kept, known, full_u, thin_u, full_v, thin_v;
  unsigned options; long rank, rows; double limit, work[9];
} decomposition;
__attribute__((noinline)) static void reset(decomposition *d, long rows, unsigned options) {
  if (d->kept && d->rows == rows && d->options == options) return;
  d->rows = rows; d->info = 0; d->kept = true; d->ready = false; d->options = options;
  d->full_u = d->thin_u = d->full_v = d->thin_v = false;
}
__attribute__((noinline)) static void want(decomposition *d) { d->full_u = (d->options & 4) != 0; d->full_v = (d->options & 16) != 0; d->thin_u = (d->options & 8) != 0; }
__attribute__((noinline)) static void rotate(double *a, long stride, long n, double c, double s) {
  for (long i = 0; i < n; i++, a += stride) { double t = c * a[0] - s * a[1]; a[1] = s * a[0] + c * a[1]; a[0] = t; }
}
__attribute__((noinline)) static void sort(double *values, long n) {
  for (long i = 0; i < n; i++) {
    double *most = values + i;
    for (double *at = values + n; --at > values + i;) if (*at > *most) most = at;
    double t = *most; *most = values[i]; values[i] = t;
  }
}
static decomposition *compute(decomposition *d, const double *x, long n, unsigned options) {
  reset(d, 3, options);
  if (options != 0) want(d);
  for (long j = 0; j < 3; j++) for (long i = 0; i < 3; i++) d->work[i + 3 * j] = x[(i + j) % n] * (i + 2 * j + 1);
  if (d->full_u) memcpy(d->u, d->work, sizeof d->u);
  if (d->full_v) for (long i = 0; i < 9; i++) d->v[i] = x[i % n] * x[0];
  bool finished = false;
  for (int sweep = 0; !finished && sweep < 3; sweep++) {
    finished = true;
    for (long p = 0; p < d->rows - 1; p++) if (d->work[p + 3 * (p + 1)] > 0.1) {
      finished = false;
      rotate(d->work + p, 3, d->rows, x[0], x[1]);
      if (d->full_u || d->thin_u) rotate(d->u + p, 3, d->rows, x[1], x[2]);
      if (d->full_v || d->thin_v) rotate(d->v + p, 3, d->rows, x[2], x[3]);
    }
  }
  for (long i = 0; i < d->rows; i++) d->values[i] = d->work[4 * i] * d->work[4 * i] + 1;
  d->rank = d->rows;
  sort(d->values, d->rows);
  d->ready = true;
  return d;
}
double loss(const double *x, long n) {
  decomposition d;
  memset(&d, 0, sizeof d);
  compute(&d, x, n, 4 | 16);
  double sum = 0;
  for (long i = 0; i < d.rank; i++) sum += d.values[i] * (i + 1) + d.u[4 * i] * d.v[2 * i];
  compute(&d, x, n, 8);
  for (long i = 0; i < d.rank; i++) sum += d.values[i] * d.values[0] * d.work[8 - i];
  return d.ready && !d.full_u ? sum : -1;
}
