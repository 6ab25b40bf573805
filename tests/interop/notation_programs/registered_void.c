// Registered augmented functions without a tape: of a function that returns nothing they return nothing, of one that
// returns a number that number.
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
__attribute__((noinline)) void add_square(const double *x, double *out) { *out += *x * *x; }
void add_square_aug(const double *x, double *dx, double *out, double *dout) { *out += *x * *x; }
void add_square_rev(const double *x, double *dx, double *out, double *dout) { *dx += 7 * *x * *dout; }
void *__enzyme_register_gradient_add_square[] = {(void *)add_square, (void *)add_square_aug, (void *)add_square_rev};
double f(double *x) { double s = 0; add_square(x, &s); return s; }
__attribute__((noinline)) double cube(double x) { return x * x * x; }
double cube_aug(double x) { return x * x * x; }
double cube_rev(double x, double d) { return 5 * x * x * d; }
void *__enzyme_register_gradient_cube[] = {(void *)cube, (void *)cube_aug, (void *)cube_rev};
double g(double x) { return cube(x) + x; }
int main(void) {
  double x = 3, d = 0;
  __enzyme_autodiff((void *)f, &x, &d);
  double e = __enzyme_autodiff((void *)g, 2.0);
  int right = d == 21 && e == 21;
  if (right) puts("all right");
  else printf("%g %g\n", d, e);
  return !right;
}
