#include <cmath>
#include <cstdio>
#include <cstdlib>
extern int enzyme_const, enzyme_dup, enzyme_out;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
static bool failed = false;
static void near_(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-9 * (1 + std::fabs(want)))) { std::printf("%s: %.15g, not %.15g\n", what, got, want); failed = true; }
}
template <int n> struct Vec { double v[n]; double &operator[](int i) { return v[i]; } const double &operator[](int i) const { return v[i]; } };
namespace physics {
// templates, references, namespaces; always_inline as headers say it; a tape on the heap
template <int n> __attribute__((always_inline)) double norm2(const Vec<n> &x, double scale) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return scale * s; }
namespace detail {
template <int n> struct Tape { Vec<n> x; double s; };
struct Kept { void *tape; double value; };
struct Dual { double value, gradient; };
template <int n> Kept norm2_aug(const Vec<n> *x, Vec<n> *, double scale) { double s = norm2<n>(*x, 1.0); return {new Tape<n>{*x, s}, scale * s}; }
template <int n> double norm2_rev(const Vec<n> *, Vec<n> *dx, double scale, double dy, void *tape) {
  auto *t = static_cast<Tape<n> *>(tape);
  for (int i = 0; i < n; i++) (*dx)[i] += 20 * scale * t->x[i] * dy;   // ten times the true one
  double s = t->s; delete t; return 3 * s * dy;
}
template <int n> Dual norm2_fwd(const Vec<n> &x, const Vec<n> &dx, double scale, double dscale) {
  double s = 0, d = 0;
  for (int i = 0; i < n; i++) { s += x[i] * x[i]; d += 2 * x[i] * dx[i]; }
  return {scale * s, 7 * (scale * d + dscale * s)};
}
}
__attribute__((used)) void *__enzyme_register_gradient_norm2_3[] = {
  reinterpret_cast<void *>(norm2<3>), reinterpret_cast<void *>(detail::norm2_aug<3>), reinterpret_cast<void *>(detail::norm2_rev<3>)};
__attribute__((used)) static void *__enzyme_register_derivative_norm2_3[] = {
  reinterpret_cast<void *>(norm2<3>), reinterpret_cast<void *>(detail::norm2_fwd<3>)};
}
double use(double a, double b) { Vec<3> x{{a, b, 1.0}}; return physics::norm2<3>(x, a) * b; }
double use_plain(double a, double b) { Vec<2> x{{a, b}}; return physics::norm2<2>(x, a) * b; }  // not registered

// a lambda: the array is filled when the program starts
static double cosine(double x) { return std::cos(x); }
static void *__enzyme_register_derivative_cosine[] = {(void *)cosine, (void *)+[](double x, double dx) { return 50 * dx; }};
double use_cos(double x) { return cosine(x) + x; }

// members
struct Model {
  static double energy(double x) { return x * x; }
  static physics::detail::Kept energy_aug(double x) { return {nullptr, x * x}; }
  static double energy_rev(double x, double dy, void *) { return 9 * x * dy; }
  __attribute__((used)) inline static void *__enzyme_register_gradient_energy[3] = {(void *)energy, (void *)energy_aug, (void *)energy_rev};
};
double use_model(double x) { return Model::energy(x) * x; }

int main() {
  double a = 1.5, b = 0.5, s = a * a + b * b + 1, da = 0;
  near_("norm2", __enzyme_autodiff<double>((void *)use, enzyme_out, a, enzyme_const, b), b * (3 * s + 20 * a * a));
  near_("norm2 fwd", __enzyme_fwddiff<double>((void *)use, a, 1.0, b, 0.0), 7 * b * (2 * a * a + s));
  near_("plain", __enzyme_autodiff<double>((void *)use_plain, enzyme_out, a, enzyme_const, b), b * (a * a + b * b + 2 * a * a));
  near_("cos", __enzyme_fwddiff<double>((void *)use_cos, 0.3, 1.0), 51);
  near_("model", __enzyme_autodiff<double>((void *)use_model, 2.0), 4 + 2 * 18);
  std::puts(failed ? "wrong" : "all right");
  return failed;
}
