#include <cloth/cloth.hpp>
#include <cmath>
extern int enzyme_const, enzyme_dup;
template <typename T, typename... A> T __enzyme_autodiff(void *, A...);
namespace cloth {
namespace {
struct Springs : Force {
  Mesh mesh; double stiffness;
  Springs(const Mesh &m, double k) : mesh(m), stiffness(k) {}
  double energy(const double *at, int) const override {
    double sum = 0;
    for (auto [a, b] : mesh.edges) {
      double dx = at[2 * a] - at[2 * b], dy = at[2 * a + 1] - at[2 * b + 1], stretch = std::sqrt(dx * dx + dy * dy) - 1;
      sum += 0.5 * stiffness * stretch * stretch;
    }
    return sum;
  }
};
struct Gravity : Force {
  double g;
  explicit Gravity(double g) : g(g) {}
  double energy(const double *at, int n) const override {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += g * at[2 * i + 1] + 1e-3 * at[2 * i] * at[2 * i] + 0.5 * g * at[2 * i + 1] * at[2 * i + 1];
    return sum;
  }
};
}
std::unique_ptr<Force> springs(const Mesh &mesh, double k) { return std::make_unique<Springs>(mesh, k); }
std::unique_ptr<Force> gravity(double g) { return std::make_unique<Gravity>(g); }
double energy(const Force *const *forces, int count, const double *at, int n) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += forces[i]->energy(at, n);
  return sum;
}
void gradient(const Force *const *forces, int count, const double *at, double *slope, int n) {
  __enzyme_autodiff<void>((void *)energy, enzyme_const, forces, count, enzyme_dup, at, slope, n);
}
}
