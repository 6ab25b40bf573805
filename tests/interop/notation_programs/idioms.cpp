#include <cmath>
#include <cstdio>
#include <vector>
#include <functional>
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_width, enzyme_dupv;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
template <typename... A> void __enzyme_autodiff(A...);
namespace ns { inline int enzyme_const; }
static int bad;
static void near(const char *w, double a, double b) { if (!(std::fabs(a - b) < 1e-6 * (1 + std::fabs(b)))) { std::printf("%s %.15g %.15g\n", w, a, b); bad = 1; } }
double byref(const double &x, double y) { return x * x * y; }
struct two { double x, y; };
struct acc { double total; void add(double v) { total += v * v; } };
static double lam(double x) { return x; }
template <double (*F)(double)> double slope(double x) { return __enzyme_autodiff<double>((void *)F, x); }
static double cube(double x) { return x * x * x; }
struct functor { double a; double operator()(double x) const { return a * x * x; } };
template <typename F> double call(const F *f, double x) { return (*f)(x); }
template <typename F> double deriv(const F &f, double x) { return __enzyme_autodiff<double>((void *)call<F>, enzyme_const, (const void *)&f, enzyme_out, x); }
double energy(const std::vector<double> &v) { double s = 0; for (double e : v) s += e * e * e; return s; }
template <typename... T> double fwd(double (*f)(double, double), T... args) { return __enzyme_fwddiff<double>((void *)f, args...); }
static double prod(double x, double y) { return x * y; }
static double choose(bool c, double x) { return __enzyme_autodiff<double>(c ? (void *)cube : (void *)lam, x); }
int main() {
  double x = 3, dx = 0;
  near("ref y", __enzyme_autodiff<double>((void *)byref, enzyme_dup, &x, &dx, 2.0), 9); near("ref x", dx, 12);
  near("slope", slope<cube>(2), 12);
  near("functor", deriv(functor{3}, 2), 12);
  double k = 5;
  near("lambda", deriv([&](double t) { return k * t * t; }, 2), 20);
  double (*const fp)(double) = [](double t) { return t * t; };
  near("pointer to lambda", __enzyme_autodiff<double>((void *)fp, 3.0), 6);
  static double (*const sp)(double) = cube;
  near("static const", __enzyme_autodiff<double>((void *)sp, 3.0), 27);
  std::vector<double> v{1, 2, 3}, dv(3);
  __enzyme_autodiff((void *)energy, &v, &dv); near("vector", dv[2], 27);
  std::vector<double> e[2] = {{1, 0, 0}, {0, 0, 1}};
  two t = __enzyme_fwddiff<two>((void *)energy, enzyme_width, 2, &v, &e[0], &e[1]); near("wide vector", t.y, 27); near("wide vector", t.x, 3);
  near("fwd", fwd(prod, 2.0, 1.0, 3.0, 0.0), 3);
  near("choose", choose(bad == 0, 2.0), 12); near("choose", choose(bad != 0, 2.0), 1);
  if (!bad) std::puts("all right");
  return bad;
}
