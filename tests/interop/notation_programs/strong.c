#include <math.h>
#include <stdio.h>
/* a zero adjoint times an infinite derivative is zero */
int enzyme_strong_zero, enzyme_width, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct two { double a, b; };
struct two __enzyme_fwddiff_two(void *, ...);
static double edge(double x) { double r = sqrt(x); return x > 0 ? r * 0.0 : x + 0 * r; }
static double flat(double x, double s) { return s * sqrt(x); }
int main(void) {
  int bad = 0;
  double zero = 0;
  bad |= __enzyme_autodiff((void *)flat, enzyme_strong_zero, 0.0, enzyme_const, zero) == 0 ? 0 : 1;
  bad |= !isnan(__enzyme_autodiff((void *)flat, 0.0, enzyme_const, zero)) << 1;
  bad |= (__enzyme_fwddiff((void *)flat, enzyme_strong_zero, 0.0, 0.0, 2.0, 0.0) == 0 ? 0 : 1) << 2;
  bad |= !isnan(__enzyme_fwddiff((void *)flat, 0.0, 0.0, 2.0, 0.0)) << 3;
  struct two t = __enzyme_fwddiff_two((void *)flat, enzyme_strong_zero, enzyme_width, 2, 4.0, 0.0, 1.0, 2.0, 0.0, 0.0);
  bad |= (t.a != 0 || t.b != 0.5) << 4;
  if (!bad) puts("all right"); else printf("%d\n", bad);
  return bad;
}
