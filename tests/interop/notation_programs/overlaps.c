#include <math.h>
#include <stdio.h>
#include <string.h>
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;
#define N 12
static void stencil(double *y, const double *x, int n) { for (int i = 1; i + 1 < n; i++) y[i] = x[i - 1] * x[i] + sin(x[i + 1]) * y[i]; }
static void outer(double *y, const double *x, const double *s, int n) { for (int k = 0; k < 3; k++) for (int i = 0; i < n; i++) y[i] += x[i] * s[0] * exp(-x[i] * 0.1); }
static void reduce(double *y, const double *x, int n) { for (int j = 0; j < n; j++) { *y = *y * 0.5 + x[j] * x[j]; } }
static void swap2(double *a, double *b, int n) { for (int i = 0; i < n; i++) { double t = a[i]; a[i] = b[i] * t; b[i] = t * t; } }
struct view { double *p; double *q; int n; };
static void views(struct view *v) { for (int i = 0; i + 1 < v->n; i++) { v->p[i + 1] = v->p[i] * v->q[i + 1] + v->q[i]; } }
static int bad;
#define CHECK(NAME, RUN, DERIV, TANGENT) do { \
  double b[N + 4], d[N + 4], t[N + 4], s[N + 4], u[N + 4], w[N + 4]; double adj = 0, fd = 0, fw = 0; \
  for (int i = 0; i < N + 4; i++) { s[i] = 0.3 + 0.05 * i; u[i] = cos(3.0 * i); w[i] = sin(2.0 * i + 1); } \
  memcpy(b, s, sizeof b); memcpy(d, w, sizeof d); { DERIV; } for (int i = 0; i < N + 4; i++) adj += d[i] * u[i]; \
  memcpy(b, s, sizeof b); memcpy(d, u, sizeof d); { TANGENT; } for (int i = 0; i < N + 4; i++) fw += d[i] * w[i]; \
  double e = 1e-6; for (int i = 0; i < N + 4; i++) b[i] = s[i] + e * u[i]; { RUN; } memcpy(t, b, sizeof t); \
  for (int i = 0; i < N + 4; i++) b[i] = s[i] - e * u[i]; { RUN; } for (int i = 0; i < N + 4; i++) fd += (t[i] - b[i]) / (2 * e) * w[i]; \
  if (fabs(adj - fd) > 1e-7 * (1 + fabs(fd)) || fabs(fw - adj) > 1e-11 * (1 + fabs(adj))) { bad++; printf("%s: reverse %.12g forward %.12g differences %.12g\n", NAME, adj, fw, fd); } } while (0)
#define CASE1(F, Y, X) CHECK(#F " " #Y " " #X, F(b + Y, b + X, N), __enzyme_autodiff((void *)F, b + Y, d + Y, b + X, d + X, N), __enzyme_fwddiff((void *)F, b + Y, d + Y, b + X, d + X, N))
#define CASE2(Y, X, S) CHECK("outer " #Y " " #X " " #S, outer(b + Y, b + X, b + S, N), __enzyme_autodiff((void *)outer, b + Y, d + Y, b + X, d + X, b + S, d + S, N), __enzyme_fwddiff((void *)outer, b + Y, d + Y, b + X, d + X, b + S, d + S, N))
static struct view at(double *p, double *q) { struct view v = {p, q, N}; return v; }
#define CASE3(P, Q) CHECK("views " #P " " #Q, struct view v = at(b + P, b + Q); views(&v), struct view v = at(b + P, b + Q); struct view dv = at(d + P, d + Q); __enzyme_autodiff((void *)views, &v, &dv), struct view v = at(b + P, b + Q); struct view dv = at(d + P, d + Q); __enzyme_fwddiff((void *)views, &v, &dv))
int main(void) {
  CASE1(stencil, 0, 0); CASE1(stencil, 1, 0); CASE1(stencil, 0, 1); CASE1(stencil, 2, 0); CASE1(stencil, 0, 2);
  CASE1(reduce, 0, 0); CASE1(reduce, 5, 0); CASE1(reduce, 13, 0);
  CASE1(swap2, 0, 1); CASE1(swap2, 1, 0); CASE1(swap2, 0, 0); CASE1(swap2, 3, 0);
  CASE2(0, 0, 0); CASE2(1, 0, 4); CASE2(0, 1, 3); CASE2(0, 0, 13); CASE2(2, 0, 2);
  CASE3(0, 0); CASE3(1, 0); CASE3(0, 1); CASE3(3, 0);
  if (!bad) puts("all right");
  return bad;
}
