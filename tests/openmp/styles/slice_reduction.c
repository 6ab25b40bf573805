#include "../selfcheck.h"
// Reductions of parts of arrays and by operators of the program, in nested loops that are one.
struct pair { double sum, most; };
#pragma omp declare reduction(both : struct pair : omp_out.sum += omp_in.sum, omp_out.most = fmax(omp_out.most, omp_in.most)) initializer(omp_priv = (struct pair){0, -1e300})
double f(const double *x, double *y, int n) {
  double a[12] = {0};
  struct pair p = {1.0, -1e300};
#pragma omp parallel for collapse(3) reduction(+ : a[2 : 8]) reduction(both : p)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) {
        double v = sin(x[i] * (1 + j) + k);
        a[2 + (i + 3 * j + k) % 8] += v * v;
        p.sum += v * x[(i + k) % n];
        p.most = fmax(p.most, v * x[i]);
      }
  for (int i = 0; i < n; i++) y[i] = a[i % 12] * x[i];
  return p.sum * p.most;
}
