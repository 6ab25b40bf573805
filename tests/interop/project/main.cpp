#include "vec.h"
#include <cmath>
#include <cstdio>
#include <vector>
double norm_of(const std::vector<double> &v);
int main() {
  std::vector<double> x{1, 2, 3}, g;
  for (double d : x) g.push_back(std::sin(d) + d * std::cos(d));
  double got = grad_norm(x.data(), 3), want = norm_of(g);
  std::printf("%.15g %.15g\n", got, want);
  return std::fabs(got - want) < 1e-12 ? 0 : 1;
}
