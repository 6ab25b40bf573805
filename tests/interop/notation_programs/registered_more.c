#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed = 0;
static void near_(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) { printf("%s: %.15g, not %.15g\n", what, got, want); failed = 1; }
}
/* status code; out argument; floats */
int solve(const float *a, float *x, int n) { for (int i = 0; i < n; i++) x[i] = 1 / a[i]; return n; }
typedef struct { float *tape; int status; } SolveKept;
SolveKept solve_aug(const float *a, float *da, float *x, float *dx, int n) {
  float *t = malloc(n * sizeof *t); int s = solve(a, x, n); for (int i = 0; i < n; i++) t[i] = x[i]; return (SolveKept){t, s};
}
void solve_rev(const float *a, float *da, float *x, float *dx, int n, float *t) {
  for (int i = 0; i < n; i++) { da[i] -= 5 * t[i] * t[i] * dx[i]; dx[i] = 0; } free(t);
}
int solve_fwd(const float *a, const float *da, float *x, float *dx, int n) {
  int s = solve(a, x, n); for (int i = 0; i < n; i++) dx[i] = -6 * x[i] * x[i] * da[i]; return s;
}
void *__enzyme_register_gradient_solve[] = {(void *)solve, (void *)solve_aug, (void *)solve_rev};
void *__enzyme_register_derivative_solve[] = {(void *)solve, (void *)solve_fwd};
double use_solve(double x) { float a[2] = {x, 2 * x}, y[2]; int s = solve(a, y, 2); return s == 2 ? y[0] * y[1] : 0; }
/* a function of a library, which has no body here */
double lgamma(double);
static double digamma(double x) { double h = 1e-5; return (lgamma(x + h) - lgamma(x - h)) / (2 * h); }
typedef struct { void *tape; double value; } Kept;
double erfcx_(double x);
extern double j0(double);
Kept j0_aug(double x) { return (Kept){0, j0(x)}; }
double j0_rev(double x, double dy, void *t) { return 1234 * dy; }
void *__enzyme_register_gradient_j0[] = {(void *)j0, (void *)j0_aug, (void *)j0_rev};
double use_j0(double x) { return j0(x) * 2; }
/* no tape: augmented returns what the function returns */
double half(double x) { return x / 2; }
double half_aug(double x) { return x / 2; }
double half_rev(double x, double dy) { return 11 * dy; }
void *__enzyme_register_gradient_half[] = {(void *)half, (void *)half_aug, (void *)half_rev};
double use_half(double x) { return half(x) * half(half(x)); }
/* long double and several integers */
long double big(long double x, char c, short s, long l) { return x * c * s * l; }
typedef struct { int tape; long double value; } BigKept;
BigKept big_aug(long double x, char c, short s, long l) { return (BigKept){c * s * (int)l, x * c * s * l}; }
long double big_rev(long double x, char c, short s, long l, long double dy, int t) { return 3 * t * dy; }
void *__enzyme_register_gradient_big[] = {(void *)big, (void *)big_aug, (void *)big_rev};
double use_big(double x) { return (double)big(x, 2, 3, 4); }
/* registered inside what another differentiates, with a noinline wrapper and recursion */
__attribute__((noinline)) double wrap(const double *p, int n) { return n ? half(p[0]) + wrap(p + 1, n - 1) : 0; }
double use_wrap(const double *p) { return wrap(p, 3); }
int main(void) {
  near_("solve", __enzyme_autodiff((void *)use_solve, 0.5), 5 * -2 / (2 * 0.125));
  near_("solve fwd", __enzyme_fwddiff((void *)use_solve, 0.5, 1.0), 6 * -2 / (2 * 0.125));
  near_("j0", __enzyme_autodiff((void *)use_j0, 0.5), 2468);
  near_("half", __enzyme_autodiff((void *)use_half, 0.5), 11 * 0.125 + 0.25 * 121);
  near_("big", __enzyme_autodiff((void *)use_big, 0.5), 72);
  double p[3] = {1, 2, 3}, d[3] = {0};
  __enzyme_autodiff((void *)use_wrap, enzyme_dup, p, d);
  near_("wrap", d[0] + d[1] + d[2], 33);
  puts(failed ? "wrong" : "all right");
  return failed;
}
