#include "../selfcheck.h"
#include <utility>
#include <vector>
// Vectors as scratch: in an iteration, in a region, as a member; the sums that a thread keeps in one.
struct Grid {
  int m;
  std::vector<double> u, v;
  explicit Grid(const double *x, int n) : m(n), u(x, x + n), v(n) {}
  double &at(int i) { return u[(i + m) % m]; }
  void step() {
#pragma omp parallel for
    for (int i = 0; i < m; i++) v[i] = u[i] + 0.1 * (at(i - 1) + at(i + 1) - 2 * u[i]);
    std::swap(u, v);
  }
};
extern "C" double f(const double *x, double *y, int n) {
  double total = 0, again = 0;
#pragma omp parallel for reduction(+ : total)
  for (int i = 0; i < 2 * n; i++) {
    std::vector<double> t(n);
    for (int j = 0; j < n; j++) t[j] = sin(x[j] * (1 + 0.1 * i));
    for (int j = 1; j < n; j++) total += t[j] * t[j - 1];
  }
#pragma omp parallel
  {
    std::vector<double> t(n);
#pragma omp for reduction(+ : again)
    for (int i = 0; i < 2 * n; i++) {
      for (int j = 0; j < n; j++) t[j] = cos(x[j] * (1 + 0.1 * i));
      for (double &v : t) again += v * v;
    }
  }
  std::vector<double> h(10, 0.0);
#pragma omp parallel
  {
    std::vector<double> mine(h.size(), 0.0);
#pragma omp for nowait
    for (int i = 0; i < 3 * n; i++) mine[i * 7 % 10] += exp(0.3 * x[i % n]) * (1 + i);
#pragma omp critical
    for (size_t k = 0; k < h.size(); k++) h[k] += mine[k];
  }
  Grid grid(x, n);
  for (int t = 0; t < 3; t++) grid.step();
  for (int i = 0; i < n; i++) y[i] = grid.u[i] * h[i % 10];
  return total + 0.1 * again;
}
