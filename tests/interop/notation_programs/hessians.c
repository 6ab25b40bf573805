#include <math.h>
#include <stdio.h>
#include <string.h>
/* Hessians: width at both levels, forward over reverse, forward over forward, reverse over forward */
int enzyme_width, enzyme_dup, enzyme_dupv, enzyme_const, enzyme_dupnoneed;
void __enzyme_autodiff(void *, ...);
struct two { double a, b; };
struct two __enzyme_fwddiff(void *, ...);
void __enzyme_fwddiff_void(void *, ...);
static int bad;
static void near(const char *w, double a, double b) { if (!(fabs(a - b) < 1e-9 * (1 + fabs(b)))) { printf("%s %.15g %.15g\n", w, a, b); bad = 1; } }
static double f(const double *x) { double s = 1; for (int i = 0; i < 3; i++) s *= sin(x[i] + 0.1 * i) + x[(i + 1) % 2]; return s; }
static void grad(const double *x, double *g) { double d[3] = {0}; __enzyme_autodiff((void *)f, x, d); g[0] = d[0]; g[1] = d[1]; }
static void gradf(const double *x, double *g) {
  double e[6] = {1, 0, 0, 0, 1, 0};
  struct two t = __enzyme_fwddiff((void *)f, enzyme_width, 2, enzyme_dupv, 3 * sizeof(double), x, e);
  g[0] = t.a; g[1] = t.b;
}
int main(void) {
  double x[3] = {0.3, 0.7, 0.2}, e[2][3] = {{1, 0, 0}, {0, 1, 0}}, g[2], H[2][2] = {{0}}, K[2][2] = {{0}}, L[2][2] = {{0}}, fd[2][2];
  double h = 1e-5, a[2], b[2];
  for (int i = 0; i < 2; i++) { double u[3], v[3]; memcpy(u, x, sizeof u); memcpy(v, x, sizeof v); u[i] += h; v[i] -= h; 
    grad(u, a); grad(v, b); for (int j = 0; j < 2; j++) fd[i][j] = (a[j] - b[j]) / (2 * h); }
  __enzyme_fwddiff_void((void *)grad, enzyme_width, 2, enzyme_dupv, 3 * sizeof(double), x, e, enzyme_dupv, sizeof H[0], g, H);
  __enzyme_fwddiff_void((void *)gradf, enzyme_width, 2, enzyme_dupv, 3 * sizeof(double), x, e, enzyme_dupv, sizeof K[0], g, K);
  double seed[2][2] = {{1, 0}, {0, 1}}, dx[2][3] = {{0}};
  __enzyme_autodiff((void *)gradf, enzyme_width, 2, enzyme_dup, x, dx[0], dx[1], enzyme_dup, g, seed[0], seed[1]);
  for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) {
    near("fd", round(fd[i][j] * 1e5), round(H[i][j] * 1e5)); near("fwd fwd", K[i][j], H[i][j]); near("rev fwd", dx[i][j], H[i][j]);
  }
  if (!bad) puts("all right");
  return bad;
}
