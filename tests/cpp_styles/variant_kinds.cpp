// A variant of a number, a vector and an optional number, assigned in a loop.
#include <cmath>
#include <optional>
#include <variant>
#include <vector>
using Value = std::variant<double, std::vector<double>, std::optional<double>>;
static double eval(const Value &v) {
  if (auto *d = std::get_if<double>(&v)) return *d * *d;
  if (auto *w = std::get_if<std::vector<double>>(&v)) { double s = 0; for (double e : *w) s += std::sin(e); return s; }
  auto &o = std::get<std::optional<double>>(v);
  return o ? std::exp(*o) : 0.5;
}
extern "C" double loss(const double *x, long n) {
  Value v = 1.0;
  double s = 0;
  for (int i = 0; i < n; i++) {
    switch (i % 4) {
      case 0: v = x[i] * x[i]; break;
      case 1: v = std::vector<double>{x[i], x[i - 1] * x[i]}; break;
      case 2: v = std::optional<double>(x[i] * x[1]); break;
      default: v = std::optional<double>();
    }
    s += eval(v) * x[i];
  }
  return s;
}
