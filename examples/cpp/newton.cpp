// Newton's method with exact Hessians: forward mode over reverse mode, a column at a time, on Rosenbrock's valley.
#include "check.h"
#include <array>
#include <cmath>
#include <utility>

extern int enzyme_const, enzyme_dup, enzyme_dupnoneed;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);

constexpr int n = 6;
using Vector = std::array<double, n>;
using Matrix = std::array<Vector, n>;

static double valley(const Vector &x) {
  double sum = 0;
  for (int i = 0; i + 1 < n; i++) {
    const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
    sum += 100 * a * a + b * b;
  }
  return sum;
}

static void gradient(const Vector &x, Vector &g) {
  g.fill(0);
  __enzyme_autodiff<void>((void *)valley, enzyme_dup, &x, &g);
}

static void hessian(const Vector &x, Matrix &h) {
  for (int column = 0; column < n; column++) {
    Vector direction{}, g{};
    direction[column] = 1;
    h[column].fill(0);
    __enzyme_fwddiff<void>((void *)gradient, enzyme_dup, &x, &direction, enzyme_dup, &g, &h[column]);
  }
}

// Gaussian elimination with the largest pivot.
static Vector solve(Matrix a, Vector b) {
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++)
      if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (int i = k + 1; i < n; i++) {
      const double f = a[i][k] / a[k][k];
      for (int j = k; j < n; j++) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (int k = n; k-- > 0;) {
    for (int j = k + 1; j < n; j++) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

int main() {
  Vector x{0.5, 0.8, 0.6, 0.9, 1.1, 1.3}, g;
  Matrix h;
  hessian(x, h);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double want = 0;  // by hand
      if (i == j) want = (i > 0 ? 200 : 0) + (i + 1 < n ? 1200 * x[i] * x[i] - 400 * x[i + 1] + 2 : 0);
      if (j == i + 1 || i == j + 1) want = -400 * x[i < j ? i : j];
      expect("hessian", h[i][j], want, 1e-12);
    }

  int rounds = 0;
  double damping = 10;  // Levenberg's: the valley is not convex everywhere
  for (double size = 1; size > 1e-9 && rounds < 60; rounds++) {
    gradient(x, g);
    hessian(x, h);
    for (int i = 0; i < n; i++) h[i][i] += damping;
    const Vector d = solve(h, g);
    Vector next;
    for (int i = 0; i < n; i++) next[i] = x[i] - d[i];
    if (valley(next) > valley(x)) {
      damping = 10 * damping + 1e-3;
      continue;
    }
    size = 0;
    for (int i = 0; i < n; i++) size += std::fabs(d[i]);
    x = next;
    damping = damping > 1e-6 ? damping / 10 : 0;
  }
  for (double xi : x) expect("minimum", xi, 1, 1e-9);
  std::printf("fewer than 60 rounds: %s\n", rounds < 60 ? "yes" : "no");
  return wrong();
}
