#include <math.h>
#include <stdio.h>
#include <stdlib.h>
/* calls that need no derivative */
int enzyme_dup, enzyme_const, enzyme_width, enzyme_vector, enzyme_scalar, enzyme_buffer;
struct four { double a, b, c, d; };
struct two { double a, b; };
struct four __enzyme_batch(void *, ...);
void __enzyme_batch_void(void *, ...);
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
double __enzyme_call_inactive(void *, ...);
double __enzyme_ignore_derivatives(double);
unsigned long __enzyme_iter(unsigned long, unsigned long);
void __enzyme_double(void *, ...);
static int bad;
static void near(const char *w, double a, double b) { if (!(fabs(a - b) < 1e-9 * (1 + fabs(b)))) { printf("%s %.15g %.15g\n", w, a, b); bad = 1; } }
static double square(double x, double s) { return x * x * s; }
static void scale(double *x, int n, double by) { for (int i = 0; i < n; i++) x[i] *= by; }
static double norm(double x, double y) { return sqrt(x * x + y * y); }
static double partly(double x) { return x * __enzyme_call_inactive((void *)norm, x, 4.0); }
static double loose(double x) { return x * __enzyme_ignore_derivatives(x * x) + x; }
static double series(double x) { unsigned long n = __enzyme_iter(3, 1); double s = 0, p = 1; for (unsigned long i = 1; i <= n; i++) { p *= x / i; s += p; } return s; }
static double dseries(double x) { return __enzyme_autodiff((void *)series, x); }
static double hinted(double *x) { __enzyme_double(x, 8); return *x * *x; }
static double dpartly(double x) { return __enzyme_autodiff((void *)partly, x); }
int main(void) {
  struct four f = __enzyme_batch((void *)square, enzyme_width, 4, enzyme_vector, 1.0, 2.0, 3.0, 4.0, enzyme_scalar, 2.0);
  near("batch", f.a + 10 * f.b + 100 * f.c + 1000 * f.d, 2 + 80 + 1800 + 32000);
  double x[4] = {1, 2, 3, 4};
  __enzyme_batch_void((void *)scale, enzyme_width, 2, enzyme_buffer, 2 * sizeof(double), x, enzyme_scalar, 2, 3.0, 5.0);
  near("buffer", x[0] + x[1] + x[2] + x[3], 3 + 6 + 15 + 20);
  near("partly", __enzyme_autodiff((void *)partly, 3.0), 5);
  near("partly fwd", __enzyme_fwddiff((void *)partly, 3.0, 2.0), 10);
  near("partly twice", __enzyme_fwddiff((void *)dpartly, 3.0, 1.0), 0);
  near("loose", __enzyme_autodiff((void *)loose, 3.0), 10);
  near("series", series(1.0), 1 + 0.5 + 1 / 6.0);
  near("series'", dseries(1.0), 1 + 1 + 0.5 + 1 / 6.0);
  near("series''", __enzyme_autodiff((void *)dseries, 1.0), 1 + 1 + 0.5 + 1 / 6.0);
  double d = 0, v = 3; __enzyme_autodiff((void *)hinted, &v, &d); near("hinted", d, 6);
  if (!bad) puts("all right");
  return bad;
}
