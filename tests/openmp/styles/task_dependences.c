#include "../selfcheck.h"
// Tasks in the order of what they depend on, in groups.
double f(const double *x, double *y, int n) {
  double a = 0, b = 0, c = 0, d = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    {
#pragma omp task depend(out : a) shared(a)
      for (int i = 0; i < n; i++) a += x[i] * x[i];
#pragma omp task depend(in : a) depend(out : b) shared(a, b)
      b = sin(a) * x[0];
#pragma omp task depend(in : a) depend(out : c) shared(a, c)
      c = exp(-a / n) * x[1];
#pragma omp task depend(in : b, c) depend(inout : d) shared(b, c, d)
      d += b * c;
    }
#pragma omp taskloop grainsize(4) shared(d)
    for (int i = 0; i < n; i++) y[i] = d * x[i] + b;
  }
  return a * d;
}
