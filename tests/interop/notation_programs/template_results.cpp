// Results by template type, as C++ headers ask for them: structs and tuples of values and gradients, empty ones among
// them.
#include <cmath>
#include <cstdio>
extern int enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_const;
extern int enzyme_primal_return, enzyme_noret, enzyme_active_return, enzyme_dup_return, enzyme_const_return;
template <class R, class... A> R __enzyme_autodiff(A...);
template <class R, class... A> R __enzyme_fwddiff(A...);
template <int At, class T> struct part { T value; };
template <class... T> struct tuple;
template <> struct tuple<> {};
template <class A> struct tuple<A> : part<0, A> {};
template <class A, class B> struct tuple<A, B> : part<0, A>, part<1, B> {};
double product(double x, double y) { return x * y; }
double first(const double *x) { return x[0] * x[0]; }
double get(const tuple<double> &t) { return t.value; }
int main() {
  auto one = __enzyme_fwddiff<tuple<double>>((void *)product, &enzyme_dup_return, &enzyme_noret, enzyme_dup, 2.0, 1.0, enzyme_dup, 5.0, 0.0);
  auto two = __enzyme_fwddiff<tuple<double, double>>((void *)product, &enzyme_dup_return, &enzyme_primal_return, enzyme_dup, 2.0, 1.0, enzyme_const, 5.0);
  auto value = __enzyme_fwddiff<tuple<double>>((void *)product, &enzyme_const_return, &enzyme_primal_return, enzyme_dup, 2.0, 1.0, enzyme_const, 5.0);
  auto both = __enzyme_autodiff<tuple<double, tuple<double, double>>>((void *)product, &enzyme_active_return, &enzyme_primal_return, enzyme_out, 2.0, enzyme_out, 5.0);
  auto grads = __enzyme_autodiff<tuple<tuple<double, double>>>((void *)product, &enzyme_active_return, &enzyme_noret, enzyme_out, 2.0, enzyme_out, 5.0);
  double x = 3, d = 0, e = 0;
  auto none = __enzyme_autodiff<tuple<double, tuple<>>>((void *)first, &enzyme_active_return, &enzyme_primal_return, enzyme_dup, (const double *)&x, &d);
  __enzyme_autodiff<tuple<tuple<>>>((void *)first, &enzyme_active_return, &enzyme_noret, enzyme_dup, (const double *)&x, &e);
  const part<0, double> &two_value = two, &both_value = both, &none_value = none;
  const part<1, double> &two_tangent = two;
  const part<1, tuple<double, double>> &both_grads = both;
  const part<0, double> &by_x = both_grads.value;
  const part<1, double> &by_y = both_grads.value;
  const part<0, double> &only_x = grads.value;
  bool right = get(one) == 5 && two_value.value == 10 && two_tangent.value == 5 && get(value) == 10 && both_value.value == 10 &&
               by_x.value == 5 && by_y.value == 2 && only_x.value == 5 && none_value.value == 9 && d == 6 && e == 6;
  if (right) std::puts("all right");
  else std::printf("%g %g %g %g %g %g %g %g %g %g %g\n", get(one), two_value.value, two_tangent.value, get(value), both_value.value, by_x.value, by_y.value, only_x.value, none_value.value, d, e);
  return !right;
}
