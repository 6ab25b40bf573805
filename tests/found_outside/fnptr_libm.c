/* A table of functions of the C library. */
#include <math.h>
extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
typedef double (*F)(double);
double apply(F f, double x) { return f(x) * .5; }
int main(int argc, char **argv) {
  F table[2] = {sin, exp};
  return !(fabs(__enzyme_autodiff((void *)apply, enzyme_const, table[argc > 5], 1.3) - cos(1.3) * .5) < 1e-12);
}
