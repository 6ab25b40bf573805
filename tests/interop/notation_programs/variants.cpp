#include <cmath>
#include <cstdio>
#include <string>
#include <variant>
// std::variant: the library copies it as one of its alternatives, whatever it holds
extern int enzyme_const, enzyme_dup;
template <typename R, typename... T> R __enzyme_autodiff(void *, T...);
template <typename R, typename... T> R __enzyme_fwddiff(void *, T...);
static int bad;
static void near(const char *what, double got, double want, double eps) {
  if (!(std::fabs(got - want) <= eps * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
using Number = std::variant<float, double>;
static Number rounded(double x) { if (x > 1) return x * x; return (float)(3 * x); }
static double visited(double x, int) { return std::visit([](auto v) { return (double)std::sin(v); }, rounded(x)) * x; }
using Value = std::variant<double, int, std::string>;
static Value evaluated(double x, int kind) {
  if (kind == 0) return std::exp(x) * x;
  if (kind == 1) return 3;
  return std::string("a text that is too long to stay in place");
}
static double result(double x, int kind) {
  const Value v = evaluated(x, kind);
  if (auto p = std::get_if<double>(&v)) return *p * x;
  if (auto p = std::get_if<int>(&v)) return *p * x;
  return std::get<std::string>(v).size() * x * x;
}
static void check(const char *what, double reverse, double forward, double want, double eps) {
  near(what, reverse, want, eps);
  near(what, forward, reverse, eps);
}
#define CHECK(f, x, n, want, eps) \
  check(#f, __enzyme_autodiff<double>((void *)f, x, n), __enzyme_fwddiff<double>((void *)f, x, 1.0, n), want, eps)
#define SLOPE(f, x, n) ((f(x + 1e-6, n) - f(x - 1e-6, n)) / 2e-6)
int main() {
  CHECK(visited, 1.3, 0, std::sin(1.69) + 1.3 * std::cos(1.69) * 2.6, 1e-12);
  CHECK(visited, 0.3, 0, std::sin(0.9) + 0.3 * std::cos(0.9) * 3, 1e-6);
  for (int kind = 0; kind < 3; kind++) CHECK(result, 1.1, kind, SLOPE(result, 1.1, kind), 1e-7);
  if (!bad) std::puts("all right");
  return bad;
}
