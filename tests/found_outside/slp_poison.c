/* Products of lanes some of which are poison. */
#include <math.h>
extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
double h(double a, double x) { return a * x * x; }
double f(double a, double x) { return h(a, x) * h(a, x + 1); }
int main(int argc, char **argv) {
  double x = 1 + argc, e = 1e-6;
  double d = __enzyme_autodiff((void *)f, enzyme_const, 3.0, x), fd = (f(3, x + e) - f(3, x - e)) / (2 * e);
  return !(fabs(d - fd) < 1e-3);
}
