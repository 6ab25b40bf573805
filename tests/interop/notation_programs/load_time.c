/* What the loader decides: ifuncs by a resolver of one's own, clones, aliases, weak symbols that nothing defines. */
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef double (*F)(double);

static double square(double x) { return x * x; }
static double cube(double x) { return x * x * x; }
static F pick(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse2") ? cube : square; }
static F drop(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse2") ? square : cube; }
double power(double x) __attribute__((ifunc("pick")));
double other(double x) __attribute__((ifunc("drop")));
__attribute__((target_clones("avx2", "default"))) double dot(const double *a, const double *b, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}
double twice(double x) { return 2 * x; }
extern double again(double) __attribute__((alias("twice")));
extern double hook(double) __attribute__((weak));
extern double scale __attribute__((weak));
extern double cos(double) __attribute__((weak));

double f(const double *x, long n) {
  double s = dot(x, x, n);
  for (long i = 0; i < n; i++) {
    double v = power(x[i]) + other(x[i]) + again(x[i]);
    if (hook) v = hook(v);
    if (&scale) v *= scale;
    if (cos) v = cos(v);
    s += v;
  }
  return s;
}

int main(void) {
  double x[3] = {0.5, 1.2, 0.7}, g[3] = {0};
  int bad = 0;
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, 3L);
  for (int i = 0; i < 3; i++) {
    double v = x[i], want = 2 * v - sin(v * v * v + v * v + 2 * v) * (3 * v * v + 2 * v + 2), d[3] = {0};
    d[i] = 1;
    bad += !(fabs(g[i] - want) < 1e-12);
    bad += !(fabs(__enzyme_fwddiff((void *)f, enzyme_dup, x, d, enzyme_const, 3L) - want) < 1e-12);
  }
  bad += !(fabs(__enzyme_autodiff((void *)power, 0.5) - 0.75) < 1e-15);
  printf(bad ? "wrong\n" : "all right\n");
  return bad;
}
