// An objective that throws outside of its domain, and a fallback that catches: the derivative follows what was taken.
#include "check.h"
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

struct OutOfDomain : std::domain_error {
  double by;
  explicit OutOfDomain(double by) : std::domain_error("outside"), by(by) {}
};

static double barrier(double slack) {
  if (slack <= 0) throw OutOfDomain(-slack);
  return -std::log(slack);
}

// Minimise cost . x with sum(x) >= 1 and x >= 0; where the barrier is undefined, a penalty on how far outside it is.
static double objective(const double *x, const double *cost, int n, double weight) {
  double sum = -1, total = 0;
  for (int i = 0; i < n; i++) {
    sum += x[i];
    total += cost[i] * x[i];
  }
  for (int i = -1; i < n; i++) {
    try {
      total += weight * barrier(i < 0 ? sum : x[i]);
    } catch (const OutOfDomain &outside) {
      total += 1e3 * (outside.by + weight) * (outside.by + weight);
    }
  }
  return total;
}

static std::vector<double> gradient(const std::vector<double> &x, const std::vector<double> &cost, double weight) {
  std::vector<double> dx(x.size());
  __enzyme_autodiff<void>((void *)objective, enzyme_dup, x.data(), dx.data(), enzyme_const, cost.data(),
                          static_cast<int>(x.size()), enzyme_const, weight);
  return dx;
}

int main() {
  const std::vector<double> cost{1.0, 2.0, 4.0};
  const int n = static_cast<int>(cost.size());
  for (const std::vector<double> &x : {std::vector<double>{0.5, 0.4, 0.6}, std::vector<double>{-0.2, 0.3, 0.1}}) {
    const auto dx = gradient(x, cost, 0.1);
    for (int i = 0; i < n; i++) {
      const double h = 1e-6;
      auto up = x, down = x;
      up[i] += h, down[i] -= h;
      expect("slope", dx[i],
             (objective(up.data(), cost.data(), n, 0.1) - objective(down.data(), cost.data(), n, 0.1)) / (2 * h), 1e-7);
    }
  }

  std::vector<double> x{-0.2, 0.3, 0.1};
  for (double weight = 1; weight > 1e-5; weight /= 4)
    for (int round = 0; round < 400; round++) {
      const auto d = gradient(x, cost, weight);
      double slope = 0;
      for (double di : d) slope += di * di;
      const double here = objective(x.data(), cost.data(), n, weight);
      auto next = x;
      for (double scale = 1; scale > 1e-14; scale /= 2) {
        for (int i = 0; i < n; i++) next[i] = x[i] - scale * d[i];
        if (objective(next.data(), cost.data(), n, weight) < here - 0.3 * scale * slope) break;
      }
      x = next;
    }
  std::printf("the cheapest takes all: %.2f %.2f %.2f\n", x[0], std::fabs(x[1]), std::fabs(x[2]));
  return wrong();
}
