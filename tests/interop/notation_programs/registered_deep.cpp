#include <cmath>
#include <cstdio>
#include <cstdlib>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_tape, enzyme_width;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
template <typename R, typename... A> R __enzyme_augmentfwd(void *, A...);
template <typename R, typename... A> R __enzyme_reverse(void *, A...);
static bool failed = false;
static void near_(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-9 * (1 + std::fabs(want)))) { std::printf("%s: %.15g, not %.15g\n", what, got, want); failed = true; }
}
struct Kept { void *tape; double value; };
struct Both { double value, d; };
// right derivative: second derivatives go through the registered functions
double cube(double x) { return x * x * x; }
Kept cube_aug(double x) { double *t = (double *)std::malloc(8); *t = x; return {t, x * x * x}; }
double cube_rev(double x, double dy, void *tape) { double t = *(double *)tape; std::free(tape); return 3 * t * t * dy; }
Both cube_fwd(double x, double dx) { return {x * x * x, 3 * x * x * dx}; }
void *__enzyme_register_gradient_cube[] = {(void *)cube, (void *)cube_aug, (void *)cube_rev};
void *__enzyme_register_derivative_cube[] = {(void *)cube, (void *)cube_fwd};
double use(double x) { return cube(x) * x; }
double slope(double x) { return __enzyme_autodiff<double>((void *)use, x); }
double tangent(double x) { return __enzyme_fwddiff<double>((void *)use, x, 1.0); }
// deliberately wrong
double sq(double x) { return x * x; }
Kept sq_aug(double x) { return {nullptr, x * x}; }
double sq_rev(double x, double dy, void *) { return 100 * x * dy; }
Both sq_fwd(double x, double dx) { return {x * x, 100 * x * dx}; }
void *__enzyme_register_gradient_sq[] = {(void *)sq, (void *)sq_aug, (void *)sq_rev};
void *__enzyme_register_derivative_sq[] = {(void *)sq, (void *)sq_fwd};
double loop(double x, int n) { double s = 0; for (int i = 1; i <= n; i++) s += sq(x * i); return s; }
double recursive(double x, int n) { return n ? sq(x) * recursive(x, n - 1) : 1; }
typedef double one(double);
double plain(double x) { return 3 * x; }
one *const table[2] = {sq, plain};
double picked(double x, int i) { return table[i](x) * x; }
double apply(one *f, double x) { return f(x); }
double applied(double x) { return apply(sq, x) + apply(plain, x); }
struct Base { virtual double at(double x) const = 0; virtual ~Base() {} };
struct A : Base { double at(double x) const override { return sq(x); } };
struct B : Base { double at(double x) const override { return x; } };
double virt(double x, int i) { A a; B b; const Base *p = i ? (Base *)&a : &b; return p->at(x); }
struct P { double x, y; };
double area(P p, double s) { return p.x * p.y * s; }
struct G { P p; double s; };
Kept area_aug(P p, double s) { return {nullptr, p.x * p.y * s}; }
G area_rev(P p, double s, double dy, void *) { return {{10 * p.y * s * dy, 20 * p.x * s * dy}, 30 * p.x * p.y * dy}; }
Both area_fwd(P p, P dp, double s, double ds) { return {p.x * p.y * s, 10 * dp.x * p.y * s + 20 * dp.y * p.x * s + 30 * ds * p.x * p.y}; }
void *__enzyme_register_gradient_area[] = {(void *)area, (void *)area_aug, (void *)area_rev};
void *__enzyme_register_derivative_area[] = {(void *)area, (void *)area_fwd};
double use_area(double x, double y, double s) { return area(P{x, y}, s); }
double mul(double a, double b) { return a * b; }
struct Mul { void *tape; double value; double d; };
Mul mul_aug(double a, double b) { return {(void *)(long)(100 * a), a * b, 0}; }
Both mul_split(double a, double da, double b, double db, void *tape) { return {a * b, (double)(long)tape * db + 1000 * b * da}; }
void *__enzyme_register_splitderivative_mul[] = {(void *)mul, (void *)mul_aug, (void *)mul_split};
double use_mul(double x) { return mul(x, 2 * x); }
int main() {
  near_("hessian fr", __enzyme_fwddiff<double>((void *)slope, 2.0, 1.0), 48);
  near_("hessian rr", __enzyme_autodiff<double>((void *)slope, 2.0), 48);
  near_("hessian ff", __enzyme_fwddiff<double>((void *)tangent, 2.0, 1.0), 48);
  near_("hessian rf", __enzyme_autodiff<double>((void *)tangent, 2.0), 48);
  near_("loop", __enzyme_autodiff<double>((void *)loop, 0.5, 4), 100 * 0.5 * 30);
  near_("direct", __enzyme_autodiff<double>((void *)sq, 0.5), 50);
  near_("direct fwd", __enzyme_fwddiff<double>((void *)sq, 0.5, 1.0), 50);
  near_("recursive", __enzyme_autodiff<double>((void *)recursive, 0.5, 3), 3 * 50 * std::pow(0.25, 2));
  near_("picked", __enzyme_autodiff<double>((void *)picked, 0.5, 0), 50 * 0.5 + 0.25);
  near_("picked fwd", __enzyme_fwddiff<double>((void *)picked, 0.5, 1.0, 0), 50 * 0.5 + 0.25);
  near_("applied", __enzyme_autodiff<double>((void *)applied, 0.5), 53);
  near_("virt", __enzyme_autodiff<double>((void *)virt, 0.5, 1), 50);
  near_("area x", __enzyme_autodiff<double>((void *)use_area, 2.0, enzyme_const, 3.0, enzyme_const, 5.0), 10 * 15);
  near_("area y", __enzyme_autodiff<double>((void *)use_area, enzyme_const, 2.0, enzyme_out, 3.0, enzyme_const, 5.0), 20 * 10);
  near_("area s", __enzyme_autodiff<double>((void *)use_area, enzyme_const, 2.0, enzyme_const, 3.0, enzyme_out, 5.0), 30 * 6);
  near_("area fwd", __enzyme_fwddiff<double>((void *)use_area, 2.0, 1.0, 3.0, 0.1, 5.0, 0.01), 150 + 20 + 1.8);
  near_("split", __enzyme_fwddiff<double>((void *)use_mul, 3.0, 1.0), 300 * 2 + 1000 * 6);
  std::puts(failed ? "wrong" : "all right");
  return failed;
}
