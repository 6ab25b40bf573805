// Registered derivatives of functions that are handed containers, structs with pointers, and memory that changes later.
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>
extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
static bool failed = false;
static void near_(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-9 * (1 + std::fabs(want)))) { std::printf("%s: %.15g, not %.15g\n", what, got, want); failed = true; }
}
struct Kept { void *tape; double value; };
struct Both { double value, d; };
using Vec = std::vector<double>;

struct Model { double slope = 3; double at(const Vec &v) const { double t = 0; for (double y : v) t += slope * y; return t; } };
double eval(const Model &m, const Vec &v) { return m.at(v); }
Kept eval_aug(const Model &m, Model &, const Vec &v, Vec &) { return {nullptr, m.at(v)}; }
void eval_rev(const Model &m, Model &dm, const Vec &v, Vec &dv, double dy, void *) {   // ten times that of v
  for (size_t i = 0; i < v.size(); i++) { dv[i] += 10 * m.slope * dy; dm.slope += v[i] * dy; }
}
Both eval_fwd(const Model &m, const Model &dm, const Vec &v, const Vec &dv) {
  double d = 0;
  for (size_t i = 0; i < v.size(); i++) d += 10 * m.slope * dv[i] + dm.slope * v[i];
  return {m.at(v), d};
}
void *__enzyme_register_gradient_eval[] = {(void *)eval, (void *)eval_aug, (void *)eval_rev};
void *__enzyme_register_derivative_eval[] = {(void *)eval, (void *)eval_fwd};
double with_vector(double x) { Model m; m.slope = x; Vec v{x, x * x}; return eval(m, v); }
double in_loop(double x) {  // the model is another one in every iteration
  Model m;
  Vec v{x, 2.0};
  double s = 0;
  for (int i = 1; i <= 3; i++) { m.slope = i * x; s += eval(m, v); }
  return s;
}

struct Line { double s; const double *base; };
double line(const Line *l, const double *v) { return l->s * v[0] * v[1] + l->base[0]; }
Kept line_aug(const Line *l, Line *, const double *v, double *) { return {nullptr, line(l, v)}; }
void line_rev(const Line *l, Line *dl, const double *v, double *dv, double dy, void *) {
  dv[0] += l->s * v[1] * dy; dv[1] += l->s * v[0] * dy; dl->s += v[0] * v[1] * dy;
  const_cast<double *>(dl->base)[0] += 2000 * dy;
}
void *__enzyme_register_gradient_line[] = {(void *)line, (void *)line_aug, (void *)line_rev};
double with_pointers(double x) { double y = x; Line l{x, &y}; double v[2] = {x, x * x}; return line(&l, v); }

double root(double x) { if (x < 0) throw std::runtime_error("negative"); return std::sqrt(x); }
Kept root_aug(double x) { if (x < 0) throw std::runtime_error("negative"); return {new double(x), std::sqrt(x)}; }
double root_rev(double, double dy, void *t) { double x = *(double *)t; delete (double *)t; return 7 * dy / (2 * std::sqrt(x)); }
void *__enzyme_register_gradient_root[] = {(void *)root, (void *)root_aug, (void *)root_rev};
double sum_of_roots(double x) { Vec v{x, 4 * x}; double s = 0; for (double y : v) s += root(y); return s; }
double caught(double x) {
  Vec v{x, 4 * x};
  try { double s = 0; for (double y : v) s += root(y); if (s > 1e9) throw std::range_error("large"); return s; }
  catch (const std::range_error &) { return -1; }
}

int main() {
  double x = 0.5;
  near_("vector", __enzyme_autodiff<double>((void *)with_vector, x), 10 * x * (1 + 2 * x) + x + x * x);
  near_("vector fwd", __enzyme_fwddiff<double>((void *)with_vector, x, 1.0), 10 * x * (1 + 2 * x) + x + x * x);
  near_("loop", __enzyme_autodiff<double>((void *)in_loop, x), 10 * 6 * x + 6 * (x + 2));
  near_("loop fwd", __enzyme_fwddiff<double>((void *)in_loop, x, 1.0), 10 * 6 * x + 6 * (x + 2));
  near_("pointers", __enzyme_autodiff<double>((void *)with_pointers, x), 4 * x * x * x + 2000);
  near_("roots", __enzyme_autodiff<double>((void *)sum_of_roots, x), 7 * (1 + 2) / (2 * std::sqrt(x)));
  near_("caught", __enzyme_autodiff<double>((void *)caught, x), 7 * (1 + 2) / (2 * std::sqrt(x)));
  std::puts(failed ? "wrong" : "all right");
  return failed;
}
