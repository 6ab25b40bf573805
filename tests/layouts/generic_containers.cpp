// optional, variant, tuple, array, shared_ptr and unordered_map inside a loop.
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
struct body { std::array<double, 2> at; std::optional<double> charge; int group; };
extern "C" double loss(const double *x, long n) {
  std::vector<std::shared_ptr<body>> bodies;
  for (long i = 0; i < n; i++) {
    auto b = std::make_shared<body>(body{{x[i], x[i] * x[0]}, std::nullopt, (int)(i % 3)});
    if (i % 2) b->charge = x[i] * x[i];
    bodies.push_back(b);
  }
  std::unordered_map<int, double> sums;
  for (auto &b : bodies) sums[b->group] += b->at[1] * b->charge.value_or(0.5);
  std::vector<std::variant<int, double>> values;
  for (long i = 0; i < n; i++) {
    if (i % 3 == 0) values.push_back((int)i + 1);
    else values.push_back(bodies[i]->at[0] * sums[(int)(i % 3)]);
  }
  double s = 0;
  for (auto &v : values) s = 0.5 * s + std::visit([](auto a) { return std::sin((double)a); }, v);
  auto [first, second] = std::make_tuple(s * x[1], s + x[2]);
  return first * second;
}
