// A Runge-Kutta solver that takes any right-hand side: lambdas with captures, std::function, and a fit of their parameters.
#include "check.h"
#include <array>
#include <cmath>
#include <functional>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

using State = std::array<double, 2>;

template <typename F> State integrate(F &&f, State y, double until, int steps) {
  const double h = until / steps;
  auto moved = [](const State &a, const State &b, double by) { return State{a[0] + by * b[0], a[1] + by * b[1]}; };
  for (int i = 0; i < steps; i++) {
    const State k1 = f(y), k2 = f(moved(y, k1, h / 2)), k3 = f(moved(y, k2, h / 2)), k4 = f(moved(y, k3, h));
    for (int c = 0; c < 2; c++) y[c] += h / 6 * (k1[c] + 2 * k2[c] + 2 * k3[c] + k4[c]);
  }
  return y;
}

struct Rates {
  double birth, hunt, death, growth;
};

// Hares and lynxes; the right-hand side captures its parameters.
static State hares(const Rates &r, const State &start, double until) {
  auto change = [&r](const State &y) {
    return State{r.birth * y[0] - r.hunt * y[0] * y[1], r.growth * y[0] * y[1] - r.death * y[1]};
  };
  return integrate(change, start, until, 60);
}

static double misfit(const Rates &rates, const std::vector<State> &counted) {
  double sum = 0;
  State y{1.0, 0.5};
  for (const State &seen : counted) {
    y = hares(rates, y, 0.5);
    for (int c = 0; c < 2; c++) sum += (y[c] - seen[c]) * (y[c] - seen[c]);
  }
  return sum;
}

// An oscillator behind std::function: which force acts is chosen at run time. Energy after the time `until`.
static double energy(double stiffness, double damping, double until, int kind) {
  std::function<State(const State &)> force;
  if (kind == 0)
    force = [=](const State &y) { return State{y[1], -stiffness * y[0]}; };
  else
    force = [=](const State &y) { return State{y[1], -stiffness * y[0] - damping * y[1]}; };
  const State y = integrate(force, State{1, 0}, until, 200);
  return 0.5 * (y[1] * y[1] + stiffness * y[0] * y[0]);
}

struct Slopes {
  double stiffness, damping;
};

int main() {
  const Rates truth{1.1, 0.4, 0.4, 0.1};
  std::vector<State> counted;
  State y{1.0, 0.5};
  for (int i = 0; i < 12; i++) counted.push_back(y = hares(truth, y, 0.5));

  Rates r{1.0, 0.5, 0.5, 0.15};
  double rate = 0.01, before = misfit(r, counted);
  const double first = before;
  for (int round = 0; round < 300; round++) {
    Rates d{};
    __enzyme_autodiff<void>((void *)misfit, enzyme_dup, &r, &d, enzyme_const, &counted);
    const Rates next{r.birth - rate * d.birth, r.hunt - rate * d.hunt, r.death - rate * d.death, r.growth - rate * d.growth};
    const double now = misfit(next, counted);
    if (now < before) {
      r = next, before = now, rate *= 1.3;
    } else {
      rate *= 0.4;
    }
  }
  std::printf("misfit fell by more than 100: %s\n", before < first / 100 ? "yes" : "no");

  Slopes d = __enzyme_autodiff<Slopes>((void *)energy, 2.0, 0.0, enzyme_const, 1.0, 0);
  expect("free: all energy stays", d.stiffness, 0.5, 1e-8);
  expect("free: no damping", d.damping, 0, 0);
  d = __enzyme_autodiff<Slopes>((void *)energy, 2.0, 0.3, enzyme_const, 1.0, 1);
  const double h = 1e-5;
  expect("damped", d.stiffness, (energy(2 + h, 0.3, 1, 1) - energy(2 - h, 0.3, 1, 1)) / (2 * h), 1e-8);
  expect("damped", d.damping, (energy(2, 0.3 + h, 1, 1) - energy(2, 0.3 - h, 1, 1)) / (2 * h), 1e-8);
  return wrong();
}
