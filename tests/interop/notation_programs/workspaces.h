// Derivatives of functions of workspaces, and what they are compared with: differences, and each other.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...), __enzyme_fwddiff(void *, ...);
#define MOST 12
typedef double function(const double *, long);
typedef void slope(const double *, double *, long);
#define DERIVATIVES(f) \
  static void f##_g(const double *x, double *g, long n) { __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, n); } \
  static double f##_t(const double *x, const double *d, long n) { return __enzyme_fwddiff((void *)f, enzyme_dup, x, d, enzyme_const, n); } \
  static void f##_h(const double *x, double *d, double *h, long n) { double g[MOST] = {0}; __enzyme_fwddiff((void *)f##_g, enzyme_dup, x, d, enzyme_dup, g, h, enzyme_const, n); }

static void near(const char *what, double a, double b) {
  if (!(fabs(a - b) < 2e-5 * (1 + fabs(b)))) { printf("%s %.15g %.15g\n", what, a, b); exit(1); }
}
static void first(const char *what, function *f, slope *gradient, const double *x, long n) {
  double g[MOST] = {0}, y[MOST];
  gradient(x, g, n);
  for (long i = 0; i < n; i++) {
    memcpy(y, x, 8 * n);
    y[i] = x[i] + 1e-5;
    double above = f(y, n);
    y[i] = x[i] - 1e-5;
    near(what, g[i], (above - f(y, n)) / 2e-5);
  }
}
static void all(const char *what, function *f, slope *gradient, double tangent(const double *, const double *, long),
                void product(const double *, double *, double *, long), const double *x, long n) {
  first(what, f, gradient, x, n);
  double g[MOST] = {0}, d[MOST], h[MOST] = {0}, above[MOST] = {0}, below[MOST] = {0}, y[MOST], sum = 0;
  for (long i = 0; i < n; i++) d[i] = 0.3 - 0.1 * i;
  gradient(x, g, n);
  for (long i = 0; i < n; i++) sum += g[i] * d[i];
  near(what, tangent(x, d, n), sum);
  product(x, d, h, n);
  for (long i = 0; i < n; i++) y[i] = x[i] + 1e-5 * d[i];
  gradient(y, above, n);
  for (long i = 0; i < n; i++) y[i] = x[i] - 1e-5 * d[i];
  gradient(y, below, n);
  for (long i = 0; i < n; i++) near(what, h[i], (above[i] - below[i]) / 2e-5);
}
