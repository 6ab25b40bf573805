// Calls declared void drop what would be returned; the shadows hold the rest.
#include <stdio.h>
extern int enzyme_out, enzyme_dup, enzyme_const, enzyme_width;
void __enzyme_autodiff(void *, ...);
struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
double f(double x, const double *y) { return x * x * y[0]; }
int main(void) {
  double y[1] = {2}, d[1] = {0}, e[1] = {0}, w[2] = {0};
  __enzyme_autodiff((void *)f, enzyme_out, 3.0, enzyme_dup, y, d);
  struct taped t = __enzyme_augmentfwd((void *)f, enzyme_out, 3.0, enzyme_dup, y, e);
  __enzyme_reverse((void *)f, enzyme_out, 3.0, enzyme_dup, y, e, 2.0, t.tape);
  __enzyme_autodiff((void *)f, enzyme_width, 2, enzyme_out, 3.0, enzyme_dup, y, &w[0], &w[1]);
  int right = d[0] == 9 && t.value == 18 && e[0] == 18 && w[0] == 9 && w[1] == 9;
  if (right) puts("all right");
  else printf("%g %g %g %g %g\n", d[0], t.value, e[0], w[0], w[1]);
  return !right;
}
