#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* several tangents or cotangents in one call */
int enzyme_width, enzyme_dup, enzyme_dupv, enzyme_dupnoneed, enzyme_dupnoneedv, enzyme_const, enzyme_out, enzyme_primal_return;
struct three { double a, b, c; };
struct four { double value, a, b, c; };
struct six { double x[3], y[3]; };
struct three __enzyme_fwddiff_three(void *, ...);
struct four __enzyme_fwddiff_four(void *, ...);
void __enzyme_fwddiff(void *, ...);
struct six __enzyme_autodiff_six(void *, ...);
void __enzyme_autodiff(void *, ...);
double __enzyme_autodiff_one(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-11 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
static double product(double x, double y) { return sin(x) * y; }
/* in place, with stack and heap memory, copies and calls */
__attribute__((noinline)) static void twist(double *x, const double *w, int n) {
  double first[4], *rest = malloc(n * sizeof *rest);
  memcpy(first, x, sizeof first); memcpy(rest, x, n * sizeof *rest);
  for (int i = 0; i < n; i++) x[i] = x[i] * rest[n - 1 - i] + w[0] * first[i % 4] * first[(i + 1) % 4];
  free(rest);
}
static void evolve(double *x, const double *w, int n) { for (int k = 0; k < 3; k++) { twist(x, w, n); if (x[0] > 2) x[0] *= w[1]; } }
struct node { double v; struct node *next; };
static double chain(const struct node *n) { double s = 1; for (; n; n = n->next) s = s * n->v + sin(n->v); return s; }
static double table[3] = {1, 2, 3};
static void store(const double *x) { for (int i = 0; i < 3; i++) table[i] = x[i] * x[i]; }
static double through_variable(const double *x) { store(x); return table[0] * table[2] + table[1]; }
static double cube(double x) { return x * x * x; }
static double slope(double x) { return __enzyme_autodiff_one((void *)cube, x); }
static void fwd(double *x, double *dx, double *w, int n) { __enzyme_fwddiff((void *)evolve, x, dx, enzyme_const, w, n); }
static void rev(double *x, double *dx, double *w, double *dw, int n) { __enzyme_autodiff((void *)evolve, x, dx, w, dw, n); }
#define N 6
#define W 3
int main(void) {
  struct three t = __enzyme_fwddiff_three((void *)product, enzyme_width, 3, 0.5, 1.0, 0.0, 2.0, 3.0, 0.0, 1.0, 1.0);
  near("t.a", t.a, cos(0.5) * 3); near("t.b", t.b, sin(0.5)); near("t.c", t.c, 2 * cos(0.5) * 3 + sin(0.5));
  struct four f = __enzyme_fwddiff_four((void *)product, enzyme_width, 3, enzyme_primal_return, 0.5, 1.0, 0.0, 2.0, enzyme_const, 3.0);
  near("f.value", f.value, sin(0.5) * 3); near("f.c", f.c, 2 * cos(0.5) * 3);
  struct six g = __enzyme_autodiff_six((void *)product, enzyme_width, 3, 0.5, 3.0);
  near("g.x", g.x[2], cos(0.5) * 3); near("g.y", g.y[1], sin(0.5));

  double start[N] = {0.3, 0.9, -0.4, 0.8, 1.1, 0.2}, w[2] = {0.7, 1.3};
  double x[N], d[W][N], one[W][N], y[N];
  for (int j = 0; j < W; j++) for (int i = 0; i < N; i++) d[j][i] = one[j][i] = cos(3.0 * i + j);
  for (int j = 0; j < W; j++) { memcpy(y, start, sizeof y); fwd(y, one[j], w, N); }
  memcpy(x, start, sizeof x);
  __enzyme_fwddiff((void *)evolve, enzyme_width, W, enzyme_dup, x, d[0], d[1], d[2], enzyme_const, w, N);
  for (int i = 0; i < N; i++) { near("x", x[i], y[i]); for (int j = 0; j < W; j++) near("evolve", d[j][i], one[j][i]); }
  for (int j = 0; j < W; j++) for (int i = 0; i < N; i++) d[j][i] = cos(3.0 * i + j);
  memcpy(x, start, sizeof x);
  __enzyme_fwddiff((void *)evolve, enzyme_width, W, enzyme_dupv, sizeof d[0], x, d, enzyme_const, w, N);
  for (int i = 0; i < N; i++) for (int j = 0; j < W; j++) near("stride", d[j][i], one[j][i]);

  double dw[W][2] = {{0}}, onew[W][2] = {{0}};
  for (int j = 0; j < W; j++) for (int i = 0; i < N; i++) d[j][i] = one[j][i] = sin(2.0 * i - j);
  for (int j = 0; j < W; j++) { memcpy(y, start, sizeof y); rev(y, one[j], w, onew[j], N); }
  memcpy(x, start, sizeof x);
  __enzyme_autodiff((void *)evolve, enzyme_width, W, enzyme_dupv, sizeof d[0], x, d, enzyme_dup, w, dw[0], dw[1], dw[2], N);
  for (int j = 0; j < W; j++) {
    for (int i = 0; i < N; i++) { near("x", x[i], y[i]); near("reverse", d[j][i], one[j][i]); }
    for (int i = 0; i < 2; i++) near("reverse w", dw[j][i], onew[j][i]);
  }

  struct node c = {3, 0}, b = {2, &c}, a = {1, &b};
  struct node dc[3] = {{0}}, db[3] = {{0}}, da[3] = {{0}};
  for (int j = 0; j < 3; j++) { db[j].next = &dc[j]; da[j].next = &db[j]; }
  da[0].v = db[1].v = dc[2].v = 1;
  t = __enzyme_fwddiff_three((void *)chain, enzyme_width, 3, &a, &da[0], &da[1], &da[2]);
  double s1 = 1 + sin(1), s2 = s1 * 2 + sin(2);
  near("chain a", t.a, (1 + cos(1)) * 6); near("chain b", t.b, (s1 + cos(2)) * 3); near("chain c", t.c, s2 + cos(3));
  for (int j = 0; j < 3; j++) da[j].v = db[j].v = dc[j].v = 0;
  __enzyme_autodiff((void *)chain, enzyme_width, 3, &a, &da[0], &da[1], &da[2]);
  for (int j = 0; j < 3; j++) { near("chain a", da[j].v, t.a); near("chain c", dc[j].v, t.c); }

  double v[3] = {1, 2, 3}, e[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  t = __enzyme_fwddiff_three((void *)through_variable, enzyme_width, 3, v, e[0], e[1], e[2]);
  near("variable", t.a, 18); near("variable", t.b, 4); near("variable", t.c, 6);
  t = __enzyme_fwddiff_three((void *)slope, enzyme_width, 3, 2.0, 1.0, 2.0, 3.0);
  near("nested", t.c, 36);
  if (!bad) puts("all right");
  return bad;
}
