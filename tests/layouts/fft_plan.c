/* A plan with twiddles and factors, recursive, complex numbers as structs. */
#include <math.h>
#include <stdlib.h>
typedef struct { double r, i; } cpx;
typedef struct { int n, inverse, factors[8]; cpx twiddles[1]; } plan;
static plan *make(int n) {
  plan *p = malloc(sizeof *p + n * sizeof(cpx));
  p->n = n; p->inverse = 0;
  int k = 0;
  for (int m = n; m > 1; m /= 2) p->factors[k++] = 2;
  for (int i = 0; i < n; i++) { p->twiddles[i].r = cos(-2 * 3.141592653589793 * i / n); p->twiddles[i].i = sin(-2 * 3.141592653589793 * i / n); }
  return p;
}
static void run(const plan *p, cpx *out, const cpx *in, int stride, int n, const int *factors) {
  if (n == 1) { *out = *in; return; }
  int m = n / *factors;
  run(p, out, in, 2 * stride, m, factors + 1);
  run(p, out + m, in + stride, 2 * stride, m, factors + 1);
  for (int k = 0; k < m; k++) {
    cpx t = p->twiddles[k * stride], a = out[k], b = out[k + m], c = {b.r * t.r - b.i * t.i, b.r * t.i + b.i * t.r};
    out[k].r = a.r + c.r; out[k].i = a.i + c.i; out[k + m].r = a.r - c.r; out[k + m].i = a.i - c.i;
  }
}
double loss(const double *x, long n) {
  plan *p = make(8);
  cpx in[8], out[8];
  for (int i = 0; i < 8; i++) { in[i].r = x[i % n]; in[i].i = x[(i + 1) % n] * 0.5; }
  run(p, out, in, 1, 8, p->factors);
  double s = 0;
  for (int i = 0; i < 8; i++) s += (i + 1) * (out[i].r * out[i].r + out[i].i * out[i].i * i);
  free(p);
  return s;
}
