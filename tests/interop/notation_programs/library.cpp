#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>
#include <string>
#include <functional>
int enzyme_dup, enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);
template <typename... T> double __enzyme_fwddiff(void *, T...);
struct big { double a[4]; };
static double onbig(big b, double s) { double r = 0; for (double e : b.a) r += e * e * s; return r; }
static double pairval(std::array<double, 2> p) { return p[0] * p[1]; }
struct duo { double x, y; };
duo __enzyme_autodiff_duo(void *, ...);
class Model {
 public:
  explicit Model(std::vector<double> w) : w_(std::move(w)) {}
  double loss(const double *x) const { double s = 0; for (size_t i = 0; i < w_.size(); i++) s += w_[i] * x[i] * x[i]; return s; }
  std::vector<double> w_;
};
static double loss(const Model *m, const double *x) { return m->loss(x); }
static double loop_alloc(double *x, int n) {
  double total = 0;
  for (int i = 0; i < n; i++) { std::unique_ptr<double[]> t(new double[2]); t[0] = x[i]; t[1] = std::sin(x[i]); total += t[0] * t[1]; }
  return total;
}
static int failures;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-9 * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); failures++; }
}
int main() {
  std::vector<double> x{1, 2, 3}, dx(3, 0.0);
  std::string name = "vector";
  __enzyme_autodiff((void *)loop_alloc, enzyme_dup, x.data(), dx.data(), enzyme_const, 3);
  near(name.c_str(), dx[1], std::sin(2) + 2 * std::cos(2));
  Model m({1, 2, 3});
  std::fill(dx.begin(), dx.end(), 0.0);
  __enzyme_autodiff((void *)loss, enzyme_const, &m, enzyme_dup, x.data(), dx.data());
  near("model x", dx[2], 18);
  Model dm({0, 0, 0});
  __enzyme_autodiff((void *)loss, enzyme_dup, &m, &dm, enzyme_const, x.data());
  near("model w", dm.w_[2], 9);
  big b{{1, 2, 3, 4}}, db{};
  double ds = __enzyme_autodiff((void *)onbig, enzyme_dup, &b, &db, enzyme_out, 2.0);
  near("ds", ds, 30); near("db", db.a[3], 16);
  ds = __enzyme_autodiff((void *)onbig, enzyme_const, b, enzyme_out, 2.0);
  near("ds", ds, 30);
  duo p = __enzyme_autodiff_duo((void *)pairval, std::array<double, 2>{3, 4});
  near("p.x", p.x, 4); near("p.y", p.y, 3);
  if (!failures) std::puts("all right");
  return failures;
}
