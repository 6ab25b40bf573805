#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* split mode with several shadows: one tape for all of them; each lane is what a pair of calls with one shadow gives */
int enzyme_width, enzyme_dup, enzyme_dupv, enzyme_const, enzyme_out, enzyme_tape, enzyme_allocated, enzyme_nofree, enzyme_not_overwritten;
struct two { double x, y; };
struct three { double a, b, c; };
struct six { double x[3], y[3]; };
struct taped { void *tape; double value; };
struct taped2 { void *tape; struct two value; };
struct places { void *tape; double *value, *shadow[3]; };
struct taped __enzyme_augmentfwd(void *, ...);
struct taped2 __enzyme_augmentfwd_two(void *, ...);
struct places __enzyme_augmentfwd_places(void *, ...);
void *__enzyme_augmentfwd_void(void *, ...);
size_t __enzyme_augmentsize(void *, ...);
double __enzyme_reverse(void *, ...);
struct three __enzyme_reverse_three(void *, ...);
struct six __enzyme_reverse_six(void *, ...);
struct two __enzyme_reverse_two(void *, ...);
void __enzyme_reverse_void(void *, ...);
struct three __enzyme_fwdsplit_three(void *, ...);
void __enzyme_fwdsplit_void(void *, ...);
void __enzyme_fwddiff_void(void *, ...);
double __enzyme_fwddiff(void *, ...);
void __enzyme_autodiff(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-11 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
#define W 3
#define N 6
static double waves(double x, double y) { double s = 0; for (int i = 0; i < 10; i++) s = sin(s + x) * y; return s; }
static double ahead(double x, double y) { return waves(x, y); }
static struct two both(const double *x) { return (struct two){x[0] * x[1], x[0] * x[0]}; }
/* in place, with stack and heap memory, copies and calls */
__attribute__((noinline)) static void twist(double *x, const double *w, int n) {
  double first[4], *rest = malloc(n * sizeof *rest);
  memcpy(first, x, sizeof first); memcpy(rest, x, n * sizeof *rest);
  for (int i = 0; i < n; i++) x[i] = x[i] * rest[n - 1 - i] + w[0] * first[i % 4] * first[(i + 1) % 4];
  free(rest);
}
static void evolve(double *x, const double *w, int n) { for (int k = 0; k < 3; k++) { twist(x, w, n); if (x[0] > 2) x[0] *= w[1]; } }
static void evolve_ahead(double *x, const double *w, int n) { evolve(x, w, n); }
struct node { double v; struct node *next; };
static double chain(const struct node *n) { double s = 1; for (; n; n = n->next) s = s * n->v + sin(n->v); return s; }
static double *product(const double *x) { double *r = malloc(sizeof *r); *r = x[0] * x[1]; return r; }
static const double start[N] = {0.3, 0.9, -0.4, 0.8, 1.1, 0.2}, weights[2] = {0.7, 1.3};
static void fill(double *d, int lane) { for (int i = 0; i < N; i++) d[i] = cos(3.0 * i + lane); }

int main(void) {
  struct taped t = __enzyme_augmentfwd((void *)waves, enzyme_width, W, 0.5, 1.5);
  near("value", t.value, waves(0.5, 1.5));
  struct six g = __enzyme_reverse_six((void *)waves, enzyme_width, W, enzyme_nofree, 0.5, 1.5, 1.0, 2.0, -3.0, t.tape);
  double e = __enzyme_fwddiff((void *)waves, 0.5, 1.0, enzyme_const, 1.5), f = __enzyme_fwddiff((void *)waves, enzyme_const, 0.5, 1.5, 1.0);
  near("x 0", g.x[0], e); near("x 2", g.x[2], -3 * e); near("y 1", g.y[1], 2 * f);
  g = __enzyme_reverse_six((void *)waves, enzyme_width, W, 0.5, 1.5, t.tape);
  near("ones", g.x[1], e); near("ones", g.y[2], f);
  t = __enzyme_augmentfwd((void *)ahead, enzyme_width, W, 0.5, 1.5);
  struct three h = __enzyme_fwdsplit_three((void *)ahead, enzyme_width, W, 0.5, 1.0, 0.0, 2.0, 1.5, 0.0, 1.0, 1.0, t.tape);
  near("tangent", h.a, e); near("tangent", h.b, f); near("tangent", h.c, 2 * e + f);

  double p[2] = {3, 4}, dp[W][2] = {{0}};
  struct taped2 t2 = __enzyme_augmentfwd_two((void *)both, enzyme_width, 2, p, dp[0], dp[1]);
  struct two a = {1, 2}, b = {0, -1};
  __enzyme_reverse_void((void *)both, enzyme_width, 2, p, dp[0], dp[1], a, b, t2.tape);
  near("structs", dp[0][0], 4 + 12); near("structs", dp[1][0], -6); near("structs", dp[0][1], 3); near("structs", dp[1][1], 0);

  double x[N], w[2], d[W][N], one[W][N], dw[W][2] = {{0}}, onew[W][2] = {{0}};
  char memory[64];
  for (int mode = 0; mode < 2; mode++) {
    size_t size = __enzyme_augmentsize((void *)evolve, enzyme_dup, enzyme_dup, enzyme_const);
    for (int j = 0; j < W; j++) {
      fill(d[j], j); fill(one[j], j); dw[j][0] = onew[j][0] = mode * sin(j); dw[j][1] = onew[j][1] = 0;
      double y[N]; memcpy(y, start, sizeof y); memcpy(w, weights, sizeof w);
      if (mode) __enzyme_fwddiff_void((void *)evolve, y, one[j], w, onew[j], N); else __enzyme_autodiff((void *)evolve, y, one[j], w, onew[j], N);
    }
    memcpy(x, start, sizeof x); memcpy(w, weights, sizeof w);
    if (mode) {
      void *tape = __enzyme_augmentfwd_void((void *)evolve_ahead, enzyme_width, W, enzyme_dupv, sizeof d[0], x, d, enzyme_dup, w, dw[0], dw[1], dw[2], N);
      memset(x, 77, sizeof x); memset(w, 77, sizeof w);
      __enzyme_fwdsplit_void((void *)evolve_ahead, enzyme_width, W, enzyme_dupv, sizeof d[0], x, d, enzyme_dup, w, dw[0], dw[1], dw[2], N, tape);
    } else {
      __enzyme_augmentfwd_void((void *)evolve, enzyme_width, W, enzyme_allocated, size, enzyme_tape, memory, enzyme_dupv, sizeof d[0], x, d, enzyme_dup, w, dw[0], dw[1], dw[2], N);
      memset(x, 77, sizeof x); memset(w, 77, sizeof w);
      __enzyme_reverse_void((void *)evolve, enzyme_width, W, enzyme_allocated, size, enzyme_tape, memory, enzyme_dupv, sizeof d[0], x, d, enzyme_dup, w, dw[0], dw[1], dw[2], N);
    }
    for (int j = 0; j < W; j++) { for (int i = 0; i < N; i++) near("evolve", d[j][i], one[j][i]); for (int i = 0; i < 2; i++) near("evolve w", dw[j][i], onew[j][i]); }
  }

  struct node n2 = {3, 0}, n1 = {2, &n2}, n0 = {1, &n1}, d2[W] = {{0}}, d1[W] = {{0}}, d0[W] = {{0}};
  for (int j = 0; j < W; j++) { d1[j].next = &d2[j]; d0[j].next = &d1[j]; }
  t = __enzyme_augmentfwd((void *)chain, enzyme_width, W, &n0, &d0[0], &d0[1], &d0[2]);
  n0.v = n1.v = n2.v = 100;
  __enzyme_reverse_void((void *)chain, enzyme_width, W, &n0, &d0[0], &d0[1], &d0[2], 1.0, 2.0, 3.0, t.tape);
  for (int j = 0; j < W; j++) { near("chain", d0[j].v, (j + 1) * (1 + cos(1)) * 6); near("chain", d2[j].v, (j + 1) * ((1 + sin(1)) * 2 + sin(2) + cos(3))); }

  double dq[W][2] = {{0}};
  struct places s = __enzyme_augmentfwd_places((void *)product, enzyme_width, W, enzyme_dupv, sizeof dq[0], p, dq);
  near("product", *s.value, 12);
  for (int j = 0; j < W; j++) *s.shadow[j] = j + 1;
  __enzyme_reverse_void((void *)product, enzyme_width, W, enzyme_dupv, sizeof dq[0], p, dq, s.tape);
  for (int j = 0; j < W; j++) { near("dq 0", dq[j][0], 4 * (j + 1)); near("dq 1", dq[j][1], 3 * (j + 1)); }
  if (!bad) puts("all right");
  return bad;
}
