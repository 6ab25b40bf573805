#include <vector>
#include <cstdio>
#include <cmath>
extern int enzyme_dup, enzyme_const;
template <class R, class... A> R __enzyme_autodiff(void *, A...);
struct Net {
  std::vector<double> w;
  double operator()(const double *x) const { double s = 0; for (size_t i = 0; i < w.size(); ++i) s += std::tanh(w[i] * x[i]); return s; }
};
template <class F> double call(const F *f, const double *x) { return (*f)(x); }
template <class F> std::vector<double> gradient(const F &f, const std::vector<double> &x) {
  std::vector<double> g(x.size());
  __enzyme_autodiff<void>((void *)call<F>, enzyme_const, (const void *)&f, enzyme_dup, x.data(), g.data());
  return g;
}
int main() {
  Net n{{0.5, 2.0}};
  std::vector<double> x{1, 2};
  for (int k = 0; k < 3; k++) { auto g = gradient(n, x); x[0] -= 0.1 * g[0]; if (k == 0 && std::fabs(g[1] - 2 * (1 - std::pow(std::tanh(4.0), 2))) > 1e-12) return 1; }
  auto lam = [c = 2.0](const double *p) { return c * p[0] * p[0]; };
  auto g = gradient(lam, std::vector<double>{3});
  if (g[0] == 12) std::puts("all right");
  return g[0] == 12 ? 0 : 2;
}
