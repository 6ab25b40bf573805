#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* forward mode in split form: the function runs once, its tangents are computed later, by the tape */
int enzyme_dup, enzyme_const, enzyme_tape, enzyme_allocated, enzyme_nofree, enzyme_not_overwritten, enzyme_noret, enzyme_interleave;
struct two { double x, y; };
struct fi { float x; int n; };
struct taped { void *tape; double value; };
struct taped2 { void *tape; struct two value; };
struct tapedfi { void *tape; struct fi value; };
struct taped __enzyme_augmentfwd(void *, ...);
struct taped2 __enzyme_augmentfwd_two(void *, ...);
struct tapedfi __enzyme_augmentfwd_fi(void *, ...);
void *__enzyme_augmentfwd_void(void *, ...);
size_t __enzyme_augmentsize(void *, ...);
double __enzyme_fwdsplit(void *, ...);
struct two __enzyme_fwdsplit_two(void *, ...);
struct fi __enzyme_fwdsplit_fi(void *, ...);
void __enzyme_fwdsplit_void(void *, ...);
double __enzyme_fwddiff(void *, ...);
void __enzyme_fwddiff_void(void *, ...);
double __enzyme_autodiff(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
static void same(const char *what, const double *a, const double *b, int n) { for (int i = 0; i < n; i++) near(what, a[i], b[i]); }

static double waves(double x, double y) { double s = 0; for (int i = 0; i < 10; i++) s = sin(s + x) * y; return s; }
/* in place, with branches that depend on the values, and a count in memory that is written over */
static void powers(double *x, double *y, int *n) {
  for (int i = 0; i < *n; i++) { y[i] = x[i] * x[i]; if (x[i] > 1.5) x[i] = x[i] * y[i]; else x[i] += y[i / 2]; }
  *n = 0;
}
/* stack and heap memory of the function's own, copies both ways, calls that are not inlined */
__attribute__((noinline)) static void mix(double *x, const double *w, int n) {
  double first[4], *rest = malloc(n * sizeof *rest);
  memcpy(first, x, sizeof first); memcpy(rest, x, n * sizeof *rest);
  for (int i = 0; i < n; i++) rest[i] = rest[i] * x[n - 1 - i] + w[0] * first[i % 4];
  memcpy(x, rest, n * sizeof *rest);
  free(rest);
}
static void evolve(double *x, double *w, int n, int steps) {
  for (int k = 0; k < steps; k++) { mix(x, w, n); if (x[0] > 2) x[0] *= w[1]; w[0] *= 0.5; memset(x + n - 1, 0, sizeof *x); }
}
/* calls without tangents that read memory; recursion */
__attribute__((noinline)) static int which(int *order, int i) { int found = order[i]; order[i] = -1; return found; }
static double chosen(const double *x, int *order, int n) { double s = 1; for (int i = 0; i < n; i++) s = s * x[which(order, i)] + s; return s; }
static double tree(double *x, int n) { if (n < 2) return x[0] * x[0]; double l = tree(x, n / 2), r = tree(x + n / 2, n - n / 2); x[0] = l; return l * r + sin(x[n - 1]); }
static double variable = 3;
static double counter(double x) { variable *= 2; return x * variable; }
static struct two both(double x, const double *w) { return (struct two){x * w[0], w[1] * x * x}; }
static struct fi packed(const double *x) { return (struct fi){(float)(x[0] * x[0]), 3}; }
static double dot(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
static double own(struct two p, double s) { return p.x * p.x * s + p.y; }
static double later(const double *x) { return exp(x[0] * x[1]); }
static double direct(const double *x) { return exp(x[0] * x[1]); }

int main(void) {
  struct taped t = __enzyme_augmentfwd((void *)waves, 0.5, 1.5), u = __enzyme_augmentfwd((void *)waves, 0.1, 0.2);
  near("value", t.value, waves(0.5, 1.5));
  near("waves", __enzyme_fwdsplit((void *)waves, 0.5, 1.0, 1.5, 2.0, t.tape), __enzyme_fwddiff((void *)waves, 0.5, 1.0, 1.5, 2.0));
  near("waves", __enzyme_fwdsplit((void *)waves, 0.1, 1.0, 0.2, 2.0, u.tape), __enzyme_fwddiff((void *)waves, 0.1, 1.0, 0.2, 2.0));

  double x[3] = {1, 2, 3}, y[3], dx[3] = {1, 0, 2}, dy[3] = {0, 1, 1}, x1[3] = {1, 2, 3}, y1[3], dx1[3] = {1, 0, 2}, dy1[3] = {0, 1, 1};
  int n = 3, n1 = 3, dn = 0;
  void *tape = __enzyme_augmentfwd_void((void *)powers, x, dx, y, dy, enzyme_const, &n);
  __enzyme_fwddiff_void((void *)powers, x1, dx1, y1, dy1, enzyme_const, &n1);
  same("x after", x, x1, 3); near("n after", n + dn, 0);
  memset(x, 77, sizeof x); memset(y, 77, sizeof y); n = 99;
  for (int k = 0; k < 2; k++) { /* the tape twice: other tangents */
    if (k) for (int i = 0; i < 3; i++) dx[i] = dx1[i] = i - 0.5, dy[i] = dy1[i] = 1, x1[i] = i + 1;
    n1 = 3;
    if (k) __enzyme_fwddiff_void((void *)powers, x1, dx1, y1, dy1, enzyme_const, &n1);
    if (k) __enzyme_fwdsplit_void((void *)powers, x, dx, y, dy, enzyme_const, &n, tape);
    else __enzyme_fwdsplit_void((void *)powers, enzyme_nofree, x, dx, y, dy, enzyme_const, &n, tape);
    same("powers dx", dx, dx1, 3); same("powers dy", dy, dy1, 3);
  }
  near("nothing is written", x[0] == x[2] && n == 99, 1);

  enum { N = 300, STEPS = 40 };
  static double z[N], dz[N], z1[N], dz1[N];
  double w[2] = {0.7, 0.3}, dw[2] = {0.1, 0.2}, w1[2] = {0.7, 0.3}, dw1[2] = {0.1, 0.2};
  for (int i = 0; i < N; i++) z[i] = z1[i] = cos(i), dz[i] = dz1[i] = sin(3.0 * i);
  char memory[64];
  size_t size = __enzyme_augmentsize((void *)evolve, enzyme_dup, enzyme_dup, enzyme_const, enzyme_const);
  __enzyme_augmentfwd_void((void *)evolve, enzyme_allocated, size, enzyme_tape, memory, z, dz, w, dw, N, STEPS);
  __enzyme_fwddiff_void((void *)evolve, z1, dz1, w1, dw1, N, STEPS);
  same("evolve", z, z1, N); memset(z, 1, sizeof z); w[0] = w[1] = -5;
  __enzyme_fwdsplit_void((void *)evolve, enzyme_allocated, size, enzyme_tape, memory, z, dz, w, dw, N, STEPS);
  same("evolve'", dz, dz1, N); same("evolve w'", dw, dw1, 2); near("w stays", w[0], -5);

  double c[4] = {1, 2, 3, 4}, dc[4] = {1, -1, 2, 0.5};
  int order[4] = {2, 0, 3, 1}, order1[4] = {2, 0, 3, 1};
  t = __enzyme_augmentfwd((void *)chosen, c, dc, enzyme_const, order, 4);
  near("order is used up", order[2], -1);
  near("chosen", __enzyme_fwdsplit((void *)chosen, c, dc, enzyme_const, order, 4, t.tape), __enzyme_fwddiff((void *)chosen, c, dc, enzyme_const, order1, 4));
  double r[7] = {.1, .2, .3, .4, .5, .6, .7}, dr[7] = {1, 2, 3, 4, 5, 6, 7}, r1[7], dr1[7];
  memcpy(r1, r, sizeof r); memcpy(dr1, dr, sizeof dr);
  t = __enzyme_augmentfwd((void *)tree, r, dr, 7);
  near("tree", __enzyme_fwdsplit((void *)tree, r, dr, 7, t.tape), __enzyme_fwddiff((void *)tree, r1, dr1, 7)); same("tree dx", dr, dr1, 7);
  t = __enzyme_augmentfwd((void *)counter, 5.0); near("counter", t.value, 30);
  near("counter'", __enzyme_fwdsplit((void *)counter, 5.0, 1.0, t.tape), 6); near("counted once", variable, 6);

  struct taped2 t2 = __enzyme_augmentfwd_two((void *)both, 2.0, w1, dw1);
  near("both", t2.value.y, w1[1] * 4);
  struct two d = __enzyme_fwdsplit_two((void *)both, 2.0, 1.0, w1, dw1, t2.tape);
  near("both x", d.x, w1[0] + 2 * dw1[0]); near("both y", d.y, 4 * w1[1] + 4 * dw1[1]);
  struct tapedfi tf = __enzyme_augmentfwd_fi((void *)packed, c, dc);
  near("packed", tf.value.x + tf.value.n, 4); near("packed'", __enzyme_fwdsplit_fi((void *)packed, c, dc, tf.tape).x, 2);
  t = __enzyme_augmentfwd((void *)dot, enzyme_not_overwritten, c, dc, enzyme_const, c, 4);
  near("dot", __enzyme_fwdsplit((void *)dot, enzyme_not_overwritten, c, dc, enzyme_const, c, 4, t.tape), 1 - 2 + 6 + 2);
  struct two p = {3, 4}, dp = {1, 2};
  t = __enzyme_augmentfwd((void *)own, p, 2.0);
  near("own", __enzyme_fwdsplit((void *)own, p, dp, 2.0, 1.0, t.tape), 2 * 3 * 2 + 2 + 9);
  /* without a tape, where memory is what it was */
  near("no tape", __enzyme_fwdsplit((void *)direct, c, dc, NULL), exp(2) * (2 - 1));
  /* inputs that change in between */
  t = __enzyme_augmentfwd((void *)later, c, dc); c[0] = c[1] = 100;
  near("later", __enzyme_fwdsplit((void *)later, c, dc, t.tape), exp(2) * (2 - 1));
  if (!bad) puts("all right");
  return bad;
}
