#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>
// second derivatives through tables of methods and of functions: those of the first derivative are differentiated too
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
static int bad;
constexpr int N = 9;
struct Layer { virtual ~Layer() = default; virtual std::vector<double> forward(const std::vector<double> &) const = 0; };
struct Dense : Layer {
  int in, out; std::vector<double> w;
  Dense(int in, int out, const double *p) : in(in), out(out), w(p, p + in * out) {}
  std::vector<double> forward(const std::vector<double> &x) const override {
    std::vector<double> y(out, 0.0);
    for (int i = 0; i < out; i++) for (int j = 0; j < in; j++) y[i] += w[i * in + j] * x[j];
    return y;
  }
};
struct Tanh : Layer {
  std::vector<double> forward(const std::vector<double> &x) const override {
    std::vector<double> y;
    for (double v : x) y.push_back(std::tanh(v));
    return y;
  }
};
static double vectors(const double *p) {
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Dense>(2, 3, p));
  layers.push_back(std::make_unique<Tanh>());
  layers.push_back(std::make_unique<Dense>(3, 1, p + 6));
  std::vector<double> x{0.3, -0.8};
  for (const auto &layer : layers) x = layer->forward(x);
  return x[0] * x[0];
}
struct Unit {  // a layer that keeps its output
  int out; double *y;
  explicit Unit(int out) : out(out), y(new double[out]) {}
  virtual ~Unit() { delete[] y; }
  virtual void run(const double *x) = 0;
};
struct Weights : Unit {
  int in; const double *w;
  Weights(int in, int out, const double *w) : Unit(out), in(in), w(w) {}
  void run(const double *x) override {
    for (int i = 0; i < out; i++) { y[i] = 0; for (int j = 0; j < in; j++) y[i] += w[i * in + j] * x[j]; }
  }
};
struct Norm : Unit {
  explicit Norm(int n) : Unit(n) {}
  void run(const double *x) override {
    double s = 1, *t = new double[out];
    for (int i = 0; i < out; i++) { t[i] = x[i] * x[i]; s += t[i]; }
    for (int i = 0; i < out; i++) y[i] = x[i] / std::sqrt(s);
    delete[] t;
  }
};
static double owned(const double *p) {
  Unit *units[] = {new Weights(2, 3, p), new Norm(3), new Weights(3, 1, p + 6)};
  double start[] = {0.3, -0.8};
  const double *x = start;
  for (Unit *unit : units) { unit->run(x); x = unit->y; }
  double y = x[0] * x[0];
  for (Unit *unit : units) delete unit;
  return y;
}
static double sine(double x) { for (int i = 0; i < 3; i++) x = std::sin(x) * x + 0.1 * i; return x; }
static double square(double x) { double s = 0; for (int i = 0; i < 2; i++) s += 0.1 * x * x * s + x; return s; }
static const struct { long times; double (*f)(double); } table[] = {{2, sine}, {3, square}};
static double numbered(const double *p) {
  double s = 0;
  for (int i = 0; i < N; i++) s += table[i % 2].f(0.1 * s + p[i]) * table[i % 2].times;
  return s;
}
template <double (*f)(const double *)> struct Net {
  static void value(const double *p, double *out) { *out = f(p); }
  static void gradient(const double *p, double *g) {
    double out = 0, seed = 1;
    for (int i = 0; i < N; i++) g[i] = 0;
    __enzyme_autodiff((void *)value, enzyme_dup, p, g, enzyme_dup, &out, &seed);
  }
  static void check(const char *what) {  // along one direction, against differences of the gradient
    double p[N], v[N], g[N], h[N] = {}, q[N], a[N], b[N], e = 1e-5;
    for (int i = 0; i < N; i++) { p[i] = 0.3 * i - 1.1; v[i] = 0.2 * i - 0.7; }
    __enzyme_fwddiff((void *)gradient, enzyme_dup, p, v, enzyme_dup, g, h);
    for (int i = 0; i < N; i++) q[i] = p[i] + e * v[i];
    gradient(q, a);
    for (int i = 0; i < N; i++) q[i] = p[i] - e * v[i];
    gradient(q, b);
    for (int i = 0; i < N; i++)
      if (!(std::fabs(h[i] - (a[i] - b[i]) / (2 * e)) <= 1e-8 * (1 + std::fabs(h[i])))) { std::printf("%s %d: %.12g\n", what, i, h[i]); bad++; }
  }
};
int main() {
  Net<vectors>::check("vectors");
  Net<owned>::check("owned");
  Net<numbered>::check("numbered");
  if (!bad) std::puts("all right");
  return bad;
}
