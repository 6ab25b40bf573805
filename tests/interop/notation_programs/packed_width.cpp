// numbers inside of integers in calls with several lanes, and C++ objects in forward mode in split form
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <variant>
#include <vector>
extern int enzyme_width, enzyme_dup, enzyme_const;
template <class R, class... A> R __enzyme_autodiff(void *, A...);
template <class R, class... A> R __enzyme_fwddiff(void *, A...);
template <class R, class... A> R __enzyme_augmentfwd(void *, A...);
template <class R, class... A> R __enzyme_fwdsplit(void *, A...);
struct Two { double a, b; };
struct Taped { void *tape; double value; };
static int bad;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-12 * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
union Either { double d; long n; };
__attribute__((noinline)) static Either either(double x, int n) { Either e; if (n > 5) e.n = 3; else e.d = x * x; return e; }
static double from_union(double x, int n) { return either(x, n).d; }
__attribute__((noinline)) static std::optional<double> power(double x, int n) {
  std::optional<double> s = 1.0;
  for (int i = 0; i < n; i++) { if (!s) return s; auto r = n > 3 ? power(x, n - 3) : s; s = *r * x + *s; }
  return s;
}
static double from_optional(double x, int n) { return *power(x, n); }
__attribute__((noinline)) static std::variant<double, int> one_of(double x, int n) { if (n > 5) return n; return x * n; }
static double from_variant(double x, int n) { auto v = one_of(x, n); return v.index() ? std::get<1>(v) : std::get<0>(v) * x; }

struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Circle : Shape { double r; explicit Circle(double r) : r(r) {} double area() const override { return 3 * r * r; } };
struct Square : Shape { double s; explicit Square(double s) : s(s) {} double area() const override { return s * s; } };
static double shapes(double x, int n) { Circle c(x); Square s(2 * x); const Shape *all[] = {&c, &s}; double sum = 0; for (int i = 0; i < n; i++) sum += all[i % 2]->area(); return sum; }
static double vectors(double *x, int n) { std::vector<double> v; for (int i = 0; i < n; i++) v.push_back(x[i] * x[0]); for (int i = 0; i < n; i++) x[i] = 0; double s = 1; for (double e : v) s = s * e + 1; return s; }
static double owned(double x, int n) { auto p = std::make_unique<double[]>(n); p[0] = x; for (int i = 1; i < n; i++) p[i] = p[i - 1] * std::sin(p[i - 1]); return p[n - 1]; }

#define LANES(f, x, n) { \
  double one = __enzyme_fwddiff<double>((void *)f, x, 1.0, n); \
  Two t = __enzyme_fwddiff<Two>((void *)f, enzyme_width, 2, x, 1.0, 3.0, n), r = __enzyme_autodiff<Two>((void *)f, enzyme_width, 2, x, n); \
  near(#f, std::round(one * 1e4), std::round((f(x + 1e-6, n) - f(x - 1e-6, n)) / 2e-6 * 1e4)); near(#f, t.a, one); near(#f, t.b, 3 * one); near(#f, r.a, one); near(#f, r.b, one); }
#define APART(f, x, n) { Taped t = __enzyme_augmentfwd<Taped>((void *)f, x, n); near(#f, t.value, f(x, n)); \
  near(#f, __enzyme_fwdsplit<double>((void *)f, x, 2.0, n, t.tape), 2 * __enzyme_fwddiff<double>((void *)f, x, 1.0, n)); }

int main() {
  LANES(from_union, 2.0, 5) LANES(from_optional, 2.0, 5) LANES(from_variant, 2.0, 5)
  near("union", __enzyme_fwddiff<double>((void *)from_union, 2.0, 1.0, 5), 4);
  near("optional", __enzyme_fwddiff<double>((void *)from_optional, 2.0, 1.0, 3), 3 * 9);  // (x + 1)^3
  near("variant", __enzyme_fwddiff<double>((void *)from_variant, 2.0, 1.0, 5), 20);
  APART(shapes, 1.5, 5) APART(owned, 1.5, 6)
  double x[4] = {1, 2, 3, 4}, d[4] = {1, -1, 0.5, 2}, y[4] = {1, 2, 3, 4}, e[4] = {1, -1, 0.5, 2};
  Taped t = __enzyme_augmentfwd<Taped>((void *)vectors, x, d, 4);
  near("vectors", __enzyme_fwdsplit<double>((void *)vectors, x, d, 4, t.tape), __enzyme_fwddiff<double>((void *)vectors, y, e, 4));
  for (int i = 0; i < 4; i++) near("vectors d", d[i], e[i]);
  if (!bad) std::puts("all right");
  return bad;
}
