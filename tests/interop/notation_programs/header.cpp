// The C++ header: activities as types, results as tuples.
#include <enzyme/enzyme>
#include <cmath>
#include <cstdio>
#include <vector>

static int wrong = 0;
static void is(double have, double want, const char *what) {
  if (std::fabs(have - want) > 1e-12 * (1 + std::fabs(want))) wrong++, std::printf("%s: %g is not %g\n", what, have, want);
}

double square(double x) { return x * x; }
double product(double x, double y) { return x * y; }
double mixed(float a, float b, double c) { return a * b * c; }
float single(float x) { return x * x * x; }
double sum(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
void scale(double &out, const double &x, double by) { out = x * x * by; }
double total(const std::vector<double> &v) { double s = 0; for (double x : v) s += std::exp(x); return s; }
struct Point { double x, y; };
double norm(Point p) { return p.x * p.x + 3 * p.y; }
struct two { double x, y; };

static void reverse() {
  enzyme::tuple<enzyme::tuple<double>> d = enzyme::autodiff<enzyme::Reverse>(square, enzyme::Active<double>{3.0});
  is(enzyme::get<0>(enzyme::get<0>(d)), 6, "square");
  auto d2 = enzyme::autodiff<enzyme::Reverse, enzyme::Active<double>>(square, enzyme::Active<double>{4.0});
  is(enzyme::get<0>(enzyme::get<0>(d2)), 8, "square, activity said");
  enzyme::tuple<enzyme::tuple<double>, double> p =
      enzyme::autodiff<enzyme::ReverseMode<true>>(square, enzyme::Active{3.0});
  is(enzyme::get<0>(enzyme::get<0>(p)), 6, "with value");
  is(enzyme::get<1>(p), 9, "value");
  auto [gs] = enzyme::autodiff<enzyme::Reverse>(product, enzyme::Active{2.0}, enzyme::Active{5.0});
  auto [gx, gy] = gs;
  is(gx, 5, "product x"), is(gy, 2, "product y");
  auto g = enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(product, enzyme::Const{2.0}, enzyme::Active{5.0}));
  is(enzyme::get<0>(g), 2, "one constant");
  auto q = enzyme::autodiff<enzyme::ReverseWithPrimal>(mixed, enzyme::Active{2.0f}, enzyme::Active{3.0f}, enzyme::Active{4.0});
  auto m = enzyme::get<0>(q);
  is(enzyme::get<0>(m), 12, "mixed a"), is(enzyme::get<1>(m), 8, "mixed b"), is(enzyme::get<2>(m), 6, "mixed c");
  is(enzyme::get<1>(q), 24, "mixed value");
  is(enzyme::get<0>(enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(single, enzyme::Active{2.0f}))), 12, "float");
  auto cube = enzyme::autodiff<enzyme::Reverse>(+[](double x) { return x * x * x; }, enzyme::Active{2.0});
  is(enzyme::get<0>(enzyme::get<0>(cube)), 12, "lambda as a pointer");
  auto s = enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(norm, enzyme::Active{Point{2, 7}}));
  is(enzyme::get<0>(s).x, 4, "struct x"), is(enzyme::get<0>(s).y, 3, "struct y");
}

static void memory() {
  double x[3] = {1, 2, 3}, d[3] = {0, 0, 0};
  enzyme::autodiff<enzyme::Reverse>(sum, enzyme::Duplicated<const double *>{x, d}, enzyme::Const<int>{3});
  is(d[2], 6, "memory");
  auto p = enzyme::autodiff<enzyme::ReverseWithPrimal>(sum, enzyme::Duplicated<const double *>{x, d}, enzyme::Const<int>{3});
  is(enzyme::get<1>(p), 14, "memory, value"), is(d[1], 8, "memory, twice");
  double out = 0, dout = 1, in = 3, din = 0;
  auto g = enzyme::autodiff<enzyme::Reverse>(scale, enzyme::DuplicatedNoNeed<double &>{out, dout},
                                             enzyme::Duplicated<const double &>{in, din}, enzyme::Active{2.0});
  is(din, 12, "reference"), is(enzyme::get<0>(enzyme::get<0>(g)), 9, "reference, number");
  std::vector<double> v{0.0, 1.0}, dv{0.0, 0.0};
  enzyme::autodiff<enzyme::Reverse>(total, enzyme::Duplicated<const std::vector<double> &>{v, dv});
  is(dv[1], std::exp(1.0), "vector");
}

static void forward() {
  enzyme::tuple<double> t = enzyme::autodiff<enzyme::Forward>(square, enzyme::Duplicated<double>{3.0, 1.0});
  is(enzyme::get<0>(t), 6, "tangent");
  enzyme::tuple<double, double> b =
      enzyme::autodiff<enzyme::Forward, enzyme::Duplicated<double>>(square, enzyme::Duplicated<double>{3.0, 2.0});
  is(enzyme::get<0>(b), 9, "forward value"), is(enzyme::get<1>(b), 12, "forward tangent");
  enzyme::tuple<double> n =
      enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<double>>(square, enzyme::Duplicated{3.0, 1.0});
  is(enzyme::get<0>(n), 6, "no need");
  enzyme::tuple<double> c = enzyme::autodiff<enzyme::Forward, enzyme::Const<double>>(square, enzyme::Duplicated{3.0, 1.0});
  is(enzyme::get<0>(c), 9, "constant result");
  double out = 0, dout = 0, in = 3, din = 1;
  enzyme::autodiff<enzyme::Forward>(scale, enzyme::Duplicated<double &>{out, dout},
                                    enzyme::Duplicated<const double &>{in, din}, enzyme::Const{2.0});
  is(out, 18, "reference, value"), is(dout, 12, "reference, tangent");
}

static void objects() {
  double by = 3;
  auto f = [by](double x) { return by * x * x; };
  is(enzyme::get<0>(enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(f, enzyme::Active{2.0}))), 12, "lambda");
  is(enzyme::get<0>(enzyme::autodiff<enzyme::Forward>(f, enzyme::Duplicated{2.0, 1.0})), 12, "lambda, forward");
  auto none = [](double x, double y) { return x * std::sin(y); };
  auto g = enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(none, enzyme::Active{2.0}, enzyme::Active{0.5}));
  is(enzyme::get<1>(g), 2 * std::cos(0.5), "lambda of nothing");
}

static double slope(double x) {
  return enzyme::get<0>(enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(single, enzyme::Active{(float)x})));
}

int main() {
  reverse();
  memory();
  forward();
  objects();
  is(enzyme::get<0>(enzyme::autodiff<enzyme::Forward>(slope, enzyme::Duplicated{2.0, 1.0})), 12, "second derivative");
  auto &&[a, b] = __enzyme_autodiff<two>((void *)product, enzyme_out, 2.0, enzyme_out, 5.0);
  is(a, 5, "by type a"), is(b, 2, "by type b");
  if (!wrong) std::puts("all right");
  return wrong;
}
