#include "../selfcheck.h"
#include <vector>
// Classes with operators as reductions, tasks that call themselves, loops over iterators.
struct Vec {
  double a = 0, b = 0;
  Vec &operator+=(const Vec &o) { a += o.a; b += o.b; return *this; }
};
#pragma omp declare reduction(+ : Vec : omp_out += omp_in) initializer(omp_priv = Vec())
static double tree(const double *x, int n) {
  if (n < 3) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * sin(x[i]); return s; }
  double l, r;
#pragma omp task shared(l)
  l = tree(x, n / 2);
#pragma omp task shared(r)
  r = tree(x + n / 2, n - n / 2);
#pragma omp taskwait
  return l * 0.9 + r * 1.1;
}
extern "C" double f(const double *x, double *y, int n) {
  std::vector<double> v(x, x + n);
  Vec total;
#pragma omp parallel for reduction(+ : total)
  for (auto it = v.begin(); it < v.end(); ++it) { Vec one; one.a = *it * *it; one.b = exp(-*it); total += one; }
  double t = 0;
#pragma omp parallel
#pragma omp masked
  t = tree(v.data(), n);
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = total.a * v[i] + t;
  return total.a * total.b + t;
}
