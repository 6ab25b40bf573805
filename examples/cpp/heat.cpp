// The conductivity of a rod, from temperatures at its end: an explicit heat solver, fitted by gradient descent.
#include "check.h"
#include <algorithm>
#include <cmath>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

constexpr int cells = 32, steps = 400;
constexpr double dx = 1.0 / cells, dt = 0.2 * dx * dx;

// du/dt = d/dx (k du/dx), with a heater that is switched off half-way; k lies on the faces between cells.
static void step(const std::vector<double> &u, std::vector<double> &next, const double *k, bool heated) {
  for (int i = 0; i < cells; i++) {
    const double left = i > 0 ? k[i] * (u[i] - u[i - 1]) : 0;
    const double right = i + 1 < cells ? k[i + 1] * (u[i + 1] - u[i]) : -k[cells] * u[i];
    next[i] = u[i] + dt / (dx * dx) * (right - left) + (heated && i < 4 ? 20 * dt : 0);
  }
}

static void simulate(const double *k, double *sensor) {
  std::vector<double> u(cells, 0.1), next(cells);
  for (int t = 0; t < steps; t++) {
    step(u, next, k, t < steps / 2);
    std::swap(u, next);
    sensor[t] = u[cells / 4];
  }
}

static double misfit(const double *k, const double *measured) {
  std::vector<double> sensor(steps);
  simulate(k, sensor.data());
  double sum = 0;
  for (int t = 0; t < steps; t++) sum += (sensor[t] - measured[t]) * (sensor[t] - measured[t]);
  return sum;
}

static std::vector<double> gradient(const std::vector<double> &k, const std::vector<double> &measured) {
  std::vector<double> dk(k.size());
  __enzyme_autodiff<void>((void *)misfit, enzyme_dup, k.data(), dk.data(), enzyme_const, measured.data());
  return dk;
}

int main() {
  std::vector<double> truth(cells + 1), k(cells + 1, 1.0), measured(steps);
  for (int i = 0; i <= cells; i++) truth[i] = 1 + 0.5 * std::sin(3.0 * i / cells);
  simulate(truth.data(), measured.data());

  const auto dk = gradient(k, measured);
  for (int i : {1, 5, 9, 20}) {
    const double h = 1e-5;
    auto up = k, down = k;
    up[i] += h, down[i] -= h;
    expect("dk", dk[i], (misfit(up.data(), measured.data()) - misfit(down.data(), measured.data())) / (2 * h), 1e-6);
  }

  const double first = misfit(k.data(), measured.data());
  double rate = 1, before = first;
  for (int round = 0; round < 60; round++) {
    const auto d = gradient(k, measured);
    auto next = k;
    for (int i = 0; i <= cells; i++) next[i] = std::max(0.1, k[i] - rate * d[i]);
    const double now = misfit(next.data(), measured.data());
    if (now < before) {
      k = next, before = now, rate *= 1.5;
    } else {
      rate *= 0.3;
    }
  }
  std::printf("misfit fell by more than 100: %s\n", before < first / 100 ? "yes" : "no");
  return wrong();
}
