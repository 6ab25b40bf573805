#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_primal_return;
struct two { double x, y; };
struct three { double x, y, z; };
struct twof { float x, y; };
struct valued { double value, gradient; };
struct point { double x, y; int tag; };
double __enzyme_autodiff(void *, ...);
struct two __enzyme_autodiff_two(void *, ...);
struct three __enzyme_autodiff_three(void *, ...);
struct twof __enzyme_autodiff_twof(void *, ...);
struct valued __enzyme_autodiff_valued(void *, ...);
float __enzyme_autodiff_float(void *, float);
void __enzyme_autodiff_void(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct valued __enzyme_fwddiff_valued(void *, ...);

static int failures;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) {
    printf("%s: got %.17g, want %.17g\n", what, got, want);
    failures++;
  }
}

static double cube(double x) { return x * x * x; }
static double slope(double x) { return __enzyme_autodiff((void *)cube, x); }
static double bend(double x) { return __enzyme_fwddiff((void *)slope, x, 1.0); }
static double product(double x, double y) { return sin(x) * y; }
static double triple(double x, double y, double z) { return x * y * z; }
static float productf(float x, float y) { return x * y * y; }
static float halff(float x) { return x * x / 2; }
static void running(double *x, int n) { for (int i = 1; i < n; i++) x[i] = x[i] * x[i - 1]; }
static void scaled(const double *x, double *y, double a, int n) { for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i]; }
static double power(double x, int n) { return n == 0 ? 1.0 : x * power(x, n - 1); }
static double norm2(const struct point *p) { return p->tag * (p->x * p->x + 3 * p->y); }
static double factor = 2.0;
static double with_factor(double x) { return factor * x * x; }
static double twice(double x) { return 2 * x; }
static double through(double (*f)(double), double x) { return f(x) * f(x); }
static double newton(double a) { double x = a; for (int i = 0; i < 60; i++) { double n = 0.5 * (x + a / x); if (fabs(n - x) < 1e-15) break; x = n; } return x; }
static double heap(const double *x, int n) {
  double *t = malloc(n * sizeof *t), s = 0;
  for (int i = 0; i < n; i++) t[i] = exp(x[i]);
  for (int i = 0; i < n; i++) s += t[i] * t[n - 1 - i];
  free(t);
  return s;
}
/* y may be x */
static void shifted(const double *x, double *y, int n) { for (int i = 0; i + 1 < n; i++) y[i] = x[i] * x[i + 1]; }

int main(void) {
  near("slope", slope(2.0), 12);
  near("bend", bend(2.0), 12);
  struct two t = __enzyme_autodiff_two((void *)product, 0.5, 3.0);
  near("t.x", t.x, cos(0.5) * 3); near("t.y", t.y, sin(0.5));
  struct three u = __enzyme_autodiff_three((void *)triple, enzyme_out, 2.0, 3.0, enzyme_out, 5.0);
  near("u.x", u.x, 15); near("u.y", u.y, 10); near("u.z", u.z, 6);
  near("const", __enzyme_autodiff((void *)product, enzyme_const, 0.5, 3.0), sin(0.5));
  struct twof f = __enzyme_autodiff_twof((void *)productf, 2.0f, 3.0f);
  near("f.x", f.x, 9); near("f.y", f.y, 12);
  near("halff", __enzyme_autodiff_float((void *)halff, 3.0f), 3);
  struct valued v = __enzyme_autodiff_valued((void *)cube, enzyme_primal_return, 2.0);
  near("value", v.value, 8); near("gradient", v.gradient, 12);
  struct valued w = __enzyme_fwddiff_valued((void *)cube, enzyme_primal_return, 2.0, 0.5);
  near("fvalue", w.value, 8); near("ftangent", w.gradient, 6);

  double x[4] = {1.5, 2, 3, 4}, d[4] = {0, 0, 0, 1};
  __enzyme_autodiff_void((void *)running, x, d, 4);
  near("run", x[3], 36); near("d0", d[0], 24); near("d1", d[1], 18); near("d3", d[3], 9);

  double a[3] = {1, 2, 3}, da[3] = {0}, y[3], dy[3] = {1, 1, 1};
  double ds = __enzyme_autodiff((void *)scaled, a, da, enzyme_dupnoneed, y, dy, enzyme_out, 2.0, enzyme_const, 3);
  near("scaled", ds, 14); near("da", da[2], 12); near("dy", dy[0], 0);
  double ta[3] = {1, 0, 1}, ty[3] = {0};
  __enzyme_fwddiff((void *)scaled, enzyme_dup, a, ta, enzyme_dup, y, ty, enzyme_const, 2.0, 3);
  near("ty", ty[0] + ty[1] + ty[2], 4 + 12);

  near("power", __enzyme_autodiff((void *)power, 1.5, 5), 5 * pow(1.5, 4));
  struct point p = {1, 2, 3}, dp = {0, 0, 0};
  __enzyme_autodiff_void((void *)norm2, &p, &dp);
  near("p.x", dp.x, 6); near("p.y", dp.y, 9);
  factor = 5.0;
  near("static", __enzyme_autodiff((void *)with_factor, 3.0), 30);
  near("through", __enzyme_autodiff((void *)through, enzyme_const, twice, 3.0), 24);
  near("newton", __enzyme_autodiff((void *)newton, 2.0), 0.5 / sqrt(2.0));
  double h[2] = {0.3, 0.4}, dh[2] = {0};
  __enzyme_autodiff((void *)heap, h, dh, 2);
  near("heap", dh[0], 2 * exp(0.7));

  double o[3] = {2, 3, 5}, od[3] = {1, 1, 1};
  __enzyme_autodiff_void((void *)shifted, o, od, o, od, 3);
  /* o' = (o0 o1, o1 o2, o2); its cotangent is (1, 1, 1) */
  near("alias value", o[0] + o[1], 6 + 15);
  near("alias 0", od[0], 3); near("alias 1", od[1], 2 + 5); near("alias 2", od[2], 3 + 1);
  if (!failures) puts("all right");
  return failures;
}
