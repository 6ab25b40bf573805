/* A function with variable arguments. */
#include <stdarg.h>
static double total(int n, ...) {
  va_list a;
  va_start(a, n);
  double s = 0;
  for (int i = 0; i < n; i++) {
    double v = va_arg(a, double);
    int k = va_arg(a, int);
    s += v * k;
  }
  va_end(a);
  return s;
}
double loss(const double *x, long n) {
  return total(3, x[0] * x[1], 2, x[2], 3, x[1] * x[1], 4) * x[0] + 0 * n;
}
