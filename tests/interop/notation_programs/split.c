#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* the two halves of reverse mode, with a tape between them */
int enzyme_dup, enzyme_const, enzyme_out, enzyme_tape, enzyme_allocated, enzyme_nofree, enzyme_not_overwritten, enzyme_const_return;
struct taped { void *tape; double value; };
struct valued { double value; void *tape; };
struct shadowed { void *tape; double *value, *shadow; };
struct two { double x, y; };
struct taped __enzyme_augmentfwd(void *, ...);
struct valued __enzyme_augmentfwd_value_first(void *, double, double);
struct shadowed __enzyme_augmentfwd_pointer(void *, ...);
void *__enzyme_augmentfwd_void(void *, ...);
size_t __enzyme_augmentsize(void *, ...);
struct two __enzyme_reverse_two(void *, ...);
double __enzyme_reverse(void *, ...);
void __enzyme_reverse_void(void *, ...);
double __enzyme_fwddiff(void *, ...);
void __enzyme_autodiff(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}

/* numbers in, a number out: the loop's values are on the tape */
static double waves(double x, double y) { double s = 0; for (int i = 0; i < 10; i++) s = sin(s + x) * y; return s; }
static struct two slope(double x, double y) {
  double s = 0, sx = 0, sy = 0;
  for (int i = 0; i < 10; i++) { double c = cos(s + x), v = sin(s + x); sx = (sx + 1) * c * y; sy = sy * c * y + v; s = v * y; }
  return (struct two){sx, sy};
}
/* memory that the program writes over between the halves */
static void powers(double *x, double *y, int n) { for (int i = 0; i < n; i++) { y[i] = x[i] * x[i]; x[i] = x[i] * y[i]; } }
/* a tape of unknown length, heap memory, calls */
__attribute__((noinline)) static double step(const double *w, double s) { return tanh(w[0] * s + w[1]); }
static double train(const double *w, double start, int steps) {
  double *all = malloc(steps * sizeof *all), total = 0, s = start;
  for (int i = 0; i < steps && s < 2; i++) { s = step(w, s); all[i] = s; total += s * all[i / 2]; }
  free(all);
  return total;
}
/* a pointer comes back, and so does its shadow */
static double *kept_product(const double *x) { double *r = malloc(sizeof *r); *r = x[0] * x[1]; return r; }
static double *picked(double *x, int i) { return x + i; }
/* zeroed memory, read before it is written */
static double total(const double *x, int n) {
  double *s = calloc(n, sizeof *s), r = 0;
  for (int k = 0; k < 2; k++) for (int i = 0; i < n; i++) { r += s[n - 1 - i] * x[i]; s[i] += x[i] * x[i]; }
  free(s);
  return r;
}
static double only(const double *x) { return x[0] * x[0] * x[1]; }
static double both(double x) {
  struct taped t = __enzyme_augmentfwd((void *)waves, x, enzyme_const, 0.7);
  return __enzyme_reverse((void *)waves, x, enzyme_const, 0.7, 1.0, t.tape);
}

int main(void) {
  struct two want = slope(0.5, 1.5);
  struct taped t = __enzyme_augmentfwd((void *)waves, 0.5, 1.5), u = __enzyme_augmentfwd((void *)waves, 0.1, 0.2);
  near("value", t.value, waves(0.5, 1.5)); near("other value", u.value, waves(0.1, 0.2));
  struct two d = __enzyme_reverse_two((void *)waves, 0.5, 1.5, 2.0, t.tape);
  near("dx", d.x, 2 * want.x); near("dy", d.y, 2 * want.y);
  d = __enzyme_reverse_two((void *)waves, 0.1, 0.2, 1.0, u.tape);
  near("other dx", d.x, slope(0.1, 0.2).x);
  struct valued v = __enzyme_augmentfwd_value_first((void *)waves, 0.5, 1.5);
  near("first value", v.value, waves(0.5, 1.5));
  near("dx again", __enzyme_reverse_two((void *)waves, 0.5, 1.5, 1.0, v.tape).x, want.x);

  double x[3] = {1, 2, 3}, y[3], dx[3] = {1, 0, 0}, dy[3] = {0, 1, 1};
  void *tape = __enzyme_augmentfwd_void((void *)powers, x, dx, y, dy, 3);
  near("x2", x[2], 27);
  memset(x, 77, sizeof x); memset(y, 77, sizeof y);
  __enzyme_reverse_void((void *)powers, x, dx, y, dy, 3, tape);
  near("dx0", dx[0], 3); near("dx1", dx[1], 4); near("dx2", dx[2], 6); near("dy", dy[1], 0);

  double w[2] = {0.8, 0.3}, dw[2] = {0}, e = 1e-6;
  char memory[64];
  size_t size = __enzyme_augmentsize((void *)train, enzyme_dup, enzyme_out, enzyme_const);
  __enzyme_augmentfwd_void((void *)train, enzyme_allocated, size, enzyme_tape, memory, w, (double *)NULL, 0.1, 40);
  double w0[2] = {w[0], w[1]}, up[2] = {w[0] + e, w[1]}, down[2] = {w[0] - e, w[1]};
  w[0] = w[1] = -5;
  double first = __enzyme_reverse((void *)train, enzyme_allocated, size, enzyme_tape, memory, enzyme_nofree, w, dw, 0.1, 40, 1.0);
  double fd = (train(up, 0.1, 40) - train(down, 0.1, 40)) / (2 * e);
  near("train w", round(dw[0] * 1e5), round(fd * 1e5));
  near("train start", round(first * 1e5), round((train(w0, 0.1 + e, 40) - train(w0, 0.1 - e, 40)) / (2 * e) * 1e5));
  double second = __enzyme_reverse((void *)train, enzyme_allocated, size, enzyme_tape, memory, w, dw, 0.1, 40, 1.0);
  near("the same tape twice", second, first); near("added up", round(dw[0] * 1e5), round(2 * fd * 1e5));

  double p[2] = {3, 4}, dp[2] = {0};
  struct shadowed s = __enzyme_augmentfwd_pointer((void *)kept_product, p, dp);
  near("product", *s.value, 12);
  *s.shadow = 5; *s.value = 0;
  __enzyme_reverse_void((void *)kept_product, p, dp, s.tape);
  near("dp0", dp[0], 20); near("dp1", dp[1], 15);
  s = __enzyme_augmentfwd_pointer((void *)picked, p, dp, 1);
  near("picked", s.value == p + 1 && s.shadow == dp + 1, 1);
  __enzyme_reverse_void((void *)picked, p, dp, 1, s.tape);

  double z[3] = {1, 2, 3}, dz[3] = {0}, once[3] = {0};
  __enzyme_autodiff((void *)total, z, once, 3);
  t = __enzyme_augmentfwd((void *)total, z, dz, 3);
  for (int k = 0; k < 2; k++) __enzyme_reverse_void((void *)total, enzyme_nofree, z, dz, 3, 1.0, t.tape);
  __enzyme_reverse_void((void *)total, z, dz, 3, 1.0, t.tape);
  for (int k = 0; k < 3; k++) near("zeroed", dz[k], 3 * once[k]);

  double q[2] = {3, 4}, dq[2] = {0};
  t = __enzyme_augmentfwd((void *)only, enzyme_not_overwritten, q, dq);
  __enzyme_reverse_void((void *)only, enzyme_not_overwritten, q, dq, 2.0, t.tape);
  near("not overwritten", dq[0], 48); near("not overwritten", dq[1], 18);
  near("nested", round(__enzyme_fwddiff((void *)both, 0.4, 1.0) * 1e5), round((both(0.4 + e) - both(0.4 - e)) / (2 * e) * 1e5));
  if (!bad) puts("all right");
  return bad;
}
