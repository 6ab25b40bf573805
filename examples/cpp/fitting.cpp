// Gauss-Newton on a curve: containers, algorithms and optional values; each residual's gradient is a row of the Jacobian.
#include "check.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

constexpr int parameters = 3;
using Vector = std::array<double, parameters>;

struct Sample {
  double at, value;
  int group;
};

// The curve, with terms that are gathered in containers on the way.
static double curve(const Vector &p, double at) {
  std::unordered_map<int, double> terms;
  terms[0] = p[0] * std::exp(-p[1] * at);
  terms[1] = p[2] * std::sin(at);
  terms[2] = terms[0] * terms[1] * 0.1;
  std::list<double> ordered;
  for (int k = 2; k >= 0; k--) ordered.push_front(terms.at(k));
  return std::accumulate(ordered.begin(), ordered.end(), 0.0);
}

static std::optional<double> offset(const Vector &p, int group) {
  if (group == 0) return std::nullopt;
  return 0.01 * group * p[0] * p[2];
}

static double residual(const Vector &p, const Sample &s) {
  return curve(p, s.at) + offset(p, s.group).value_or(0.0) - s.value;
}

static Vector solve(std::array<Vector, parameters> a, Vector b) {
  for (int k = 0; k < parameters; k++)
    for (int i = k + 1; i < parameters; i++) {
      const double f = a[i][k] / a[k][k];
      for (int j = k; j < parameters; j++) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  for (int k = parameters; k-- > 0;) {
    for (int j = k + 1; j < parameters; j++) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

int main() {
  const Vector truth{2.0, 0.7, 0.5};
  std::vector<Sample> samples;
  for (int i = 0; i < 30; i++) samples.push_back({0.2 * i, 0, i % 3});
  for (Sample &s : samples) s.value = residual(truth, s);

  Vector p{1.0, 1.0, 1.0};
  int rounds = 0;
  for (double size = 1; size > 1e-12 && rounds < 30; rounds++) {
    std::array<Vector, parameters> normal{};
    Vector right{};
    for (const Sample &s : samples) {
      Vector row{};
      __enzyme_autodiff<void>((void *)residual, enzyme_dup, &p, &row, enzyme_const, &s);
      const double r = residual(p, s);
      if (rounds == 0) {
        const double c = 0.1 * s.group * 0.1;  // by hand
        const double decay = std::exp(-p[1] * s.at), wave = std::sin(s.at);
        expect("d0", row[0], decay + 0.1 * decay * p[2] * wave + c * p[2], 1e-13);
        expect("d1", row[1], -s.at * decay * p[0] * (1 + 0.1 * p[2] * wave), 1e-13);
        expect("d2", row[2], wave + 0.1 * p[0] * decay * wave + c * p[0], 1e-13);
      }
      for (int i = 0; i < parameters; i++) {
        right[i] -= row[i] * r;
        for (int j = 0; j < parameters; j++) normal[i][j] += row[i] * row[j];
      }
    }
    const Vector step = solve(normal, right);
    std::transform(p.begin(), p.end(), step.begin(), p.begin(), [](double a, double b) { return a + b; });
    size = std::inner_product(step.begin(), step.end(), step.begin(), 0.0);
  }
  for (int i = 0; i < parameters; i++) expect("parameter", p[i], truth[i], 1e-9);
  std::printf("found in fewer than 12 rounds: %s\n", rounds < 12 ? "yes" : "no");
  return wrong();
}
