#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>
// dynamic_cast where the base is virtual: how far apart the two are is only known when the program runs
template <typename R, typename... T> R __enzyme_autodiff(void *, T...);
template <typename R, typename... T> R __enzyme_fwddiff(void *, T...);
static int bad;
static void near(const char *what, double got, double want, double eps) {
  if (!(std::fabs(got - want) <= eps * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
struct Shape { double scale; explicit Shape(double s) : scale(s) {} virtual ~Shape() = default; virtual double area() const = 0; };
struct Round : virtual Shape {
  double r;
  Round(double s, double r) : Shape(s), r(r) {}
  double area() const override { return scale * r * r * 3; }
};
struct Named : virtual Shape { int name; Named(double s, int n) : Shape(s), name(n) {} };
struct Ring : Round, Named {
  double hole;
  Ring(double s, double r, double hole) : Shape(s), Round(s, r), Named(s, 7), hole(hole) {}
  double area() const override { return Round::area() - scale * hole * hole; }
};
struct Box : virtual Shape { double w; Box(double s, double w) : Shape(s), w(w) {} double area() const override { return scale * w * w; } };
__attribute__((noinline)) static double measured(Shape *s) {
  double a = s->area();
  if (auto *r = dynamic_cast<Round *>(s)) a += r->r * r->r;
  if (auto *n = dynamic_cast<Named *>(s)) a *= n->name;
  if (auto *d = dynamic_cast<Ring *>(s)) d->hole *= 2, a += std::sin(d->hole);
  return a;
}
static double f(double x) {
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(std::make_unique<Round>(x, 2 * x));
  all.push_back(std::make_unique<Ring>(x, 2 * x, x / 2));
  all.push_back(std::make_unique<Box>(x, x));
  double s = 0;
  for (auto &p : all) s += measured(p.get());
  return s;
}
int main() {
  for (double x : std::vector<double>{1.3, 0.4}) {
    const double want = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, got = __enzyme_autodiff<double>((void *)f, x);
    near("reverse", got, want, 1e-7);
    near("forward", __enzyme_fwddiff<double>((void *)f, x, 1.0), got, 1e-12);
  }
  if (!bad) std::puts("all right");
  return bad;
}
