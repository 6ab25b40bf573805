// std::max and std::min without <algorithm>: libstdc++ brings them with <cmath>, and programs rely on it.
#include <cmath>
#include <cstdio>
double __enzyme_autodiff(void *, ...);
double f(double x) {
  double a = x * x, b = 2 * x;
  std::swap(a, b);
  return std::max(b, 1.0) + std::min(a, 100.0) + std::max({a, b, 4.0});
}
int main() {
  double d = __enzyme_autodiff((void *)f, 3.0);
  bool right = d == 14;
  if (right) std::puts("all right");
  else std::printf("%g\n", d);
  return !right;
}
