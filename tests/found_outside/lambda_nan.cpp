// A lambda given by value as enzyme_const.
#include <cmath>
extern "C" int enzyme_const;
double __enzyme_autodiff_(void *, ...);
template <class F> double call(F f, double x) { return f(x) * f(x + 1); }
int main() {
  double a = 3;
  auto l = [a](double x) { return a * x * x; };
  double d = __enzyme_autodiff_((void *)call<decltype(l)>, enzyme_const, l, 2.0);
  return !(std::fabs(d - 540) < 1e-9);
}
