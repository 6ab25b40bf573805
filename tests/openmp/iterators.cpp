#include "selfcheck.h"
#include <vector>
extern "C" double f(const double *x, double *y, int n) {
  std::vector<double> v(x, x + n);
  auto square = [](double t) { return t * t * t; };
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (auto it = v.begin(); it < v.end(); ++it) s += square(*it);
#pragma omp parallel for
  for (const double &t : v) y[&t - v.data()] = square(t) * s;
  return s;
}
