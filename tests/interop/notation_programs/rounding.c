// Relative rounding errors, propagated by the derivative of each operation.
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_error_estimate(void *, ...);
float __enzyme_error_estimate_float(void *, ...);
static const double u = 0x1p-53;
static int failed;
static void check(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-6 * want)) { failed++; printf("%s: %g, not %g\n", what, got, want); }
}
double cosine(double x) { return cos(x); }
double cancels(double x) { double a = cos(x), b = 1 - a, c = x * x; return b / c; }  // (1 - cos x) / x^2
double stable(double x) { double s = sin(x / 2) / (x / 2); return 0.5 * s * s; }     // the same without cancellation
double sum(const double *x, int n) { double s = x[0]; for (int i = 1; i < n; i++) s += x[i]; return s; }
double magnitude(double x) { return fmax(fabs(-x), 0); }
float single(float x) { return x * x; }
double narrowed(double x) { return (float)x; }
double hidden(double x, double y) { return x * (y / 3); }
double zero(double x) { return 0 * x; }
double shifted(double x) { return (x - 2) + 3; }
static void scale(const double *x, double *out, int n) { for (int i = 0; i < n; i++) out[i] = x[i] > 0 ? 2 * x[i] : x[i]; }
static double inner(double x) { return exp(x); }
double outer(double x) { return inner(x) * inner(-x); }
int main(void) {
  check("one operation", __enzyme_error_estimate((void *)cosine, 1e-7, 0.0), u);
  check("an error of the argument", __enzyme_error_estimate((void *)cosine, 1.0, 1e-3), 1e-3 * tan(1.0) + u);
  double x = 1e-7, a = cos(x), b = 1 - a;
  check("cancellation", __enzyme_error_estimate((void *)cancels, x, 0.0), u * a / b + 3 * u);
  check("no cancellation", __enzyme_error_estimate((void *)stable, x, 0.0), 10 * u);
  double v[4] = {1, 1e8, -1e8, 1}, e[4] = {0}, s = v[0], r = 0;
  for (int i = 1; i < 4; i++) { double next = s + v[i]; r = r * fabs(s) / fabs(next) + u; s = next; }
  check("a sum", __enzyme_error_estimate((void *)sum, enzyme_dup, v, e, 4), r);
  check("exact", __enzyme_error_estimate((void *)magnitude, -2.0, 1e-9), 1e-9);
  check("float", __enzyme_error_estimate_float((void *)single, 3.0f, 0.0f), 0x1p-24);
  check("narrowed", __enzyme_error_estimate((void *)narrowed, 0.1, 1e-12), 0x1p-24 + 1e-12);
  check("a constant is exact", __enzyme_error_estimate((void *)hidden, 2.0, 0.0, enzyme_const, 5.0), u);
  check("an argument", __enzyme_error_estimate((void *)hidden, 2.0, 0.0, 5.0, 1e-10), 2 * u + 1e-10);
  check("zero", __enzyme_error_estimate((void *)zero, 2.0, 1e-3), 0);
  check("what was zero", __enzyme_error_estimate((void *)shifted, 2.0, 1e-3), 2e-3 / 3 + u);
  double out[2], given[2] = {1e-6, 1e-7}, errors[2] = {0}, at[2] = {3, -4};
  __enzyme_error_estimate((void *)scale, enzyme_dup, at, given, enzyme_dup, out, errors, 2);
  check("memory", errors[0], 1e-6 + u);
  check("moved", errors[1], 1e-7);
  check("calls", __enzyme_error_estimate((void *)outer, 2.0, 1e-9), 4e-9 + 3 * u);
  if (!failed) puts("all right");
  return failed;
}
