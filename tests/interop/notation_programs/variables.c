#include <math.h>
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static double work[8];
double state = 7;
__attribute__((noinline)) void fill(const double *x, int n) { for (int i = 0; i < n; i++) work[i] = x[i] * x[i]; }
__attribute__((noinline)) double take(int n) { double s = 0; for (int i = 0; i < n; i++) s += work[i] * work[n - 1 - i]; return s; }
double f(const double *x, int n) { fill(x, n); return take(n); }
__attribute__((noinline)) void bump(double x) { state += x; }
double h(double x) { double s = 0; for (int i = 0; i < 3; i++) { bump(x * s + x); s += state * x; } return s; }
static _Thread_local double own[4];
static __thread int calls;
double turn(const double *x, int n) {
  calls++;
  for (int i = 0; i < n; i++) own[i] = x[i] * x[i];
  for (int r = 0; r < 2; r++) for (int i = 0; i < n; i++) own[i] *= own[(i + 1) % n];
  return own[0];
}
static double hd(double x) { state = 7; return h(x); }
int main(void) {
  double x[3] = {1, 2, 3}, d[3] = {0};
  __enzyme_autodiff((void *)f, x, d, 3);
  /* 2 x0^2 x2^2 + x1^4 */
  int bad = d[0] != 36 || d[1] != 32 || d[2] != 12;
  d[0] = d[1] = d[2] = 0;
  __enzyme_autodiff((void *)f, x, d, 3);
  bad |= d[0] != 36 || d[1] != 32 || d[2] != 12;
  bad |= work[2] != 9;
  state = 7; double r = __enzyme_autodiff((void *)h, 0.5);
  double after = state;
  double want = (hd(0.5 + 1e-5) - hd(0.5 - 1e-5)) / 2e-5;
  hd(0.5); bad |= fabs(state - after) > 1e-14;
  state = 7; double t = __enzyme_fwddiff((void *)h, 0.5, 1.0);

  bad |= fabs(r - want) > 1e-6 || fabs(t - r) > 1e-12;
  double y[3] = {1.5, -2, 0.5}, e[3] = {0}, v[3] = {1, 0.5, -2};
  __enzyme_autodiff((void *)turn, y, e, 3);
  double along = 0, slope = 0;
  for (int i = 0; i < 3; i++) {
    double p[3] = {y[0], y[1], y[2]}, q[3] = {y[0], y[1], y[2]};
    p[i] += 1e-5; q[i] -= 1e-5;
    const double difference = (turn(p, 3) - turn(q, 3)) / 2e-5;
    bad |= !(fabs(e[i] - difference) <= 1e-6 * (1 + fabs(difference)));
    along += e[i] * v[i];
  }
  slope = __enzyme_fwddiff((void *)turn, y, v, 3);
  bad |= !(fabs(slope - along) <= 1e-12 * (1 + fabs(along))) || calls != 8;
  if (!bad) puts("all right");
  return bad;
}
