// Closures of different size in one vector; some keep a number by reference and change it.
#include <cmath>
#include <functional>
#include <vector>
extern "C" double loss(const double *x, long n) {
  std::vector<std::function<double(double)>> steps;
  double total = 1;
  for (long i = 0; i < n; i++) {
    double c = x[i];
    if (i % 2) steps.push_back([c, &total](double v) { total += 0.1 * v; return c * v; });
    else {
      double d = c * c, e = d * c, g = e * c;
      steps.push_back([c, d, e, g](double v) { return c * std::sin(v) + d * e * g; });
    }
  }
  double s = 1;
  for (auto &step : steps) s = step(s);
  return s * total;
}
