/* Shadows of W lanes interleave (enzyme_dupv 8); with -DW=2|3|4 and AVX-512 lanes 1.. were wrong. */
#include <math.h>
#include <stdio.h>
extern int enzyme_const, enzyme_dup, enzyme_dupv, enzyme_dupnoneedv, enzyme_width;
void __enzyme_autodiff(void *, ...);
#ifndef W
#define W 2
#endif
static void mapexp(const double *restrict x, double *restrict y, long n) {
  for (long i = 0; i < n; i++) { double v = x[i * W]; y[i * W] = exp(-v * v) * sin(v) + v / (1 + v * v); }
}
enum { N = 64 };
int main(void) {
  double x[N * W], y[N * W], dx[N * W], dy[N * W];
  for (int i = 0; i < N * W; i++) { x[i] = 0.1 + 0.05 * (i / W); y[i] = 0; dx[i] = 0; dy[i] = 0.3 + 0.1 * (i % 7); }
  double want[N * W];
  for (int i = 0; i < N; i++) { double v = x[i * W], d = exp(-v * v) * (cos(v) - 2 * v * sin(v)) + (1 - v * v) / ((1 + v * v) * (1 + v * v));
    for (int k = 0; k < W; k++) want[i * W + k] = d * dy[i * W + k]; }
  __enzyme_autodiff((void *)mapexp, enzyme_width, W, enzyme_dupv, 8L, x, dx, enzyme_dupnoneedv, 8L, y, dy, enzyme_const, (long)N);
  int bad = 0;
  for (int i = 0; i < N * W; i++) if (fabs(dx[i] - want[i]) > 1e-12) { bad++; if (bad < 4) printf("dx[%d] = %g, want %g\n", i, dx[i], want[i]); }
  printf("W=%d: %d of %d wrong\n", W, bad, N * W);
  return bad != 0;
}
