#include <cmath>
#include <cstdio>
#include <vector>
#include <stdexcept>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_primal_return;
template <typename Return, typename... Arguments> Return __enzyme_autodiff(Arguments...);
template <typename Return, typename... Arguments> Return __enzyme_fwddiff(Arguments...);

static int failures;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-9 * (1 + std::fabs(want)))) {
    std::printf("%s: got %.17g, want %.17g\n", what, got, want);
    failures++;
  }
}
template <typename T> T poly(T x) { return x * x * x + 2 * x; }
namespace shapes {
struct Shape { virtual double area(double s) const = 0; virtual ~Shape() = default; };
struct Square : Shape { double area(double s) const override { return s * s; } };
struct Disc : Shape { double area(double s) const override { return 3.0 * s * s; } };
}
static double areas(double s) {
  shapes::Square a; shapes::Disc b;
  const shapes::Shape *all[] = {&a, &b};
  double sum = 0;
  for (auto *shape : all) sum += shape->area(s);
  return sum;
}
static double sums(const double *x, std::size_t n) {
  std::vector<double> v(x, x + n);
  for (auto &e : v) e = std::exp(e) * e;
  double s = 0;
  for (double e : v) s += e;
  return s;
}
struct Pair { double a, b; };
static double byref(const double &x, const Pair &p) { return x * p.a * p.a + p.b; }
static double guarded(double x) {
  try { if (x > 1) throw std::runtime_error("big"); return x; } catch (const std::exception &) { return x * x; }
}
template <typename F> double derivative(F f, double x) { return __enzyme_autodiff<double>((void *)f, x); }
static double lambda_sum(double x, double y) { auto f = [&](double t) { return t * x + y * y; }; return f(x); }
struct Both { double value, dx, dy; };
int main() {
  near("poly", __enzyme_autodiff<double>((void *)poly<double>, 2.0), 14);
  near("polyf", __enzyme_autodiff<float>((void *)poly<float>, 2.0f), 14);
  near("areas", __enzyme_autodiff<double>((void *)areas, 2.0), 16);
  double x[2] = {0.5, 1}, dx[2] = {0, 0};
  __enzyme_autodiff<void>((void *)sums, enzyme_dup, x, dx, enzyme_const, std::size_t(2));
  near("sums", dx[1], 2 * std::exp(1.0));
  double r = 2, dr = 0; Pair p{3, 1}, dp{0, 0};
  __enzyme_autodiff<void>((void *)byref, &r, &dr, &p, &dp);
  near("dr", dr, 9); near("dp.a", dp.a, 12); near("dp.b", dp.b, 1);
  near("guarded", __enzyme_fwddiff<double>((void *)guarded, 3.0, 1.0), 6);
  near("guarded", __enzyme_autodiff<double>((void *)guarded, 0.5), 1);
  auto b = __enzyme_autodiff<Both>((void *)lambda_sum, enzyme_primal_return, 2.0, 3.0);
  near("value", b.value, 13); near("dx", b.dx, 4); near("dy", b.dy, 6);
  near("derivative", derivative(poly<double>, 1.0), 5);
  if (!failures) std::puts("all right");
  return failures;
}
