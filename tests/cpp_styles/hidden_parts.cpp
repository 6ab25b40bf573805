// A solver whose parts are behind a pointer, moved and exchanged; exceptions that are caught.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>
class Solver {
  struct Impl;
  std::unique_ptr<Impl> p;

public:
  explicit Solver(int n);
  ~Solver();
  Solver(Solver &&) noexcept;
  Solver &operator=(Solver &&) noexcept;
  void set(int i, double v);
  double step(double dt);
};
struct Solver::Impl {
  std::vector<double> u, f;
  int steps = 0;
  double energy = 0;
  explicit Impl(int n) : u(n), f(n) {}
};
Solver::Solver(int n) : p(std::make_unique<Impl>(n)) {}
Solver::~Solver() = default;
Solver::Solver(Solver &&) noexcept = default;
Solver &Solver::operator=(Solver &&) noexcept = default;
void Solver::set(int i, double v) {
  if (i < 0 || i >= (int)p->u.size()) throw std::out_of_range("index");
  p->u[i] = v;
}
double Solver::step(double dt) {
  int n = p->u.size();
  for (int i = 0; i < n; i++) p->f[i] = std::sin(p->u[(i + 1) % n]) - p->u[i];
  p->energy = 0;
  for (int i = 0; i < n; i++) {
    p->u[i] += dt * p->f[i];
    p->energy += p->u[i] * p->u[i];
  }
  ++p->steps;
  return p->energy;
}
extern "C" double loss(const double *x, long n) {
  Solver s(n), t(n);
  double r = 0;
  for (int i = 0; i <= n; i++) try {
      s.set(i, x[i % n]);
      t.set(n - 1 - i, x[i % n] * x[0]);
    } catch (const std::exception &e) { r += x[1] * x[1]; }
  for (int k = 0; k < 3; k++) {
    r += s.step(0.1);
    r += t.step(0.2);
    if (k == 1) std::swap(s, t);
  }
  Solver w = std::move(s);
  return r + w.step(0.05);
}
