#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>
// which function is called is said by the program's own memory: virtual functions, pointers in structs
extern int enzyme_dup, enzyme_const, enzyme_width;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct two { double a, b; };
two __enzyme_fwddiff_two(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-12 * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
struct Shape { double scale = 1; virtual ~Shape() = default; virtual double area(double t) const = 0; };
struct Square : Shape { double a; explicit Square(double a) : a(a) {} double area(double t) const override { return scale * a * a * t; } };
struct Circle : Shape { double r; explicit Circle(double r) : r(r) {} double area(double t) const override { return scale * 3 * r * r * std::sin(t); } };
static double one(const Shape *s, double t) { return s->area(t) * s->area(2 * t); }
static double total(const std::vector<Shape *> *all, double t) { double s = 0; for (const Shape *p : *all) s += p->area(t); return s; }
static double half(double x) { return x / 2; }
static double cube(double x) { return x * x * x; }
struct Layer { double (*act)(double); double w; };
static double net(const Layer *l, int n, double x) { for (int i = 0; i < n; i++) x = l[i].act(l[i].w * x); return x; }
static double slope(const Layer *l, int n, double x) { return __enzyme_autodiff((void *)net, enzyme_const, l, n, x); }
static double apply(double (*f)(double), double x) { return f(x) * x; }
struct Unit { virtual ~Unit() = default; virtual double run(double) const = 0; };
struct Call : Unit { double (*f)(double); explicit Call(double (*f)(double)) : f(f) {} double run(double v) const override { return f(v); } };
struct Line : Unit { const double *w; explicit Line(const double *w) : w(w) {} double run(double v) const override { return w[0] * v + w[1]; } };
static double made_here(const double *w, const Unit *last, double x) {  // objects of the derivative's own, and one of the program's
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(std::make_unique<Line>(w));
  units.push_back(std::make_unique<Call>(cube));
  units.push_back(std::make_unique<Line>(w + 2));
  units.push_back(std::make_unique<Call>(half));
  for (const auto &u : units) x = u->run(x);
  return last->run(x);
}
template <typename T> T __enzyme_virtualreverse(T);
int main(int argc, char **) {
  Square s(3), ds(0); Circle c(2), dc(0);
  ds.scale = dc.scale = 0;
  double dt = __enzyme_autodiff((void *)one, enzyme_dup, (Shape *)&s, (Shape *)&ds, 0.5);
  near("square t", dt, 81 * 4 * 0.5); near("square a", ds.a, 4 * 27 * 0.5); near("square scale", ds.scale, 2 * 81 * 0.5);
  dt = __enzyme_autodiff((void *)one, enzyme_dup, (Shape *)&c, (Shape *)&dc, 0.5);
  near("circle t", dt, 144 * (std::cos(0.5) * std::sin(1) + 2 * std::sin(0.5) * std::cos(1)));
  std::vector<Shape *> all, dall;
  for (int i = 0; i < 2 + argc; i++) {
    if (i % 2) { all.push_back(new Square(i)); dall.push_back(new Square(0)); } else { all.push_back(new Circle(i)); dall.push_back(new Circle(0)); }
    dall.back()->scale = 0;
  }
  dt = __enzyme_autodiff((void *)total, &all, &dall, 0.5);
  near("total t", dt, 1 + 3 * 4 * std::cos(0.5)); near("total a", static_cast<Square *>(dall[1])->a, 1);
  near("total r", static_cast<Circle *>(dall[2])->r, 12 * std::sin(0.5));
  near("forward", __enzyme_fwddiff((void *)total, enzyme_const, &all, 0.5, 1.0), dt);
  Layer l[2] = {{half, 3}, {cube, 2}}, d[2] = {{__enzyme_virtualreverse(half), 0}, {nullptr, 0}};
  double dx = __enzyme_autodiff((void *)net, l, d, 2, 1.5);  // (2 * 3 x / 2)^3
  near("net x", dx, 3 * 27 * 1.5 * 1.5); near("net w0", d[0].w, 3 * std::pow(4.5, 3) / 3); near("net w1", d[1].w, 3 * std::pow(4.5, 3) / 2);
  near("nested", __enzyme_fwddiff((void *)slope, enzyme_const, l, 2, 1.5, 1.0), 6 * 27 * 1.5);
  two t = __enzyme_fwddiff_two((void *)net, enzyme_width, 2, enzyme_const, l, 2, 1.5, 1.0, 2.0);
  near("width", t.b, 2 * dx);
  double (*volatile which)(double) = argc > 5 ? half : cube;
  near("argument", __enzyme_autodiff((void *)apply, enzyme_const, which, 2.0), 32);
  double w[4] = {2, 1, 3, -1}, dw[4] = {0}; Call last(cube);
  dx = __enzyme_autodiff((void *)made_here, w, dw, enzyme_const, (Unit *)&last, 0.5);  // ((3 (2 x + 1)^3 - 1) / 2)^3
  const double y = (3 * 8 - 1) / 2.0;
  near("made x", dx, 3 * y * y * 1.5 * 12 * 2); near("made w1", dw[1], 3 * y * y * 1.5 * 12);
  near("made w2", dw[2], 3 * y * y * 0.5 * 8); near("made w3", dw[3], 3 * y * y * 0.5);
  if (!bad) std::puts("all right");
  return bad;
}
