#include "vec.h"
#include <math.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
static double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += sin(x[i]) * x[i]; return s; }
double grad_norm(double *x, int n) {
  double *g = calloc(n, sizeof *g);
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, n);
  double r = dot(g, g, n);
  free(g);
  return sqrt(r);
}
