// A stiff chemical reaction (Robertson's), integrated by implicit steps. Newton's method wants the Jacobian of the rates in
// each step: enzyme_width computes all its columns in one call. Afterwards the sensitivities of the final state to the rate
// constants: by columns (one tangent for each constant) and by rows (one cotangent for each substance), each in one call.
#include "check.h"
#include <algorithm>
#include <array>
#include <cmath>

extern int enzyme_const, enzyme_dup, enzyme_dupv, enzyme_width;
void __enzyme_fwddiff(void *, ...);
void __enzyme_autodiff(void *, ...);

constexpr int substances = 3, constants = 3;
using State = std::array<double, substances>;
using Matrix = std::array<State, substances>;  // row by row

static void rates(const double *y, const double *k, double *out) {
  const double slow = k[0] * y[0], fast = k[1] * y[1] * y[1], back = k[2] * y[1] * y[2];
  out[0] = -slow + back;
  out[1] = slow - back - fast;
  out[2] = fast;
}

// Column j of the Jacobian is the tangent in direction j: three directions stand behind y, three results behind `value`.
static Matrix jacobian(const State &y, const double *k, State &value) {
  Matrix directions{}, columns{}, rows{};
  for (int j = 0; j < substances; j++) directions[j][j] = 1;
  __enzyme_fwddiff((void *)rates, enzyme_width, substances, enzyme_dupv, sizeof(State), y.data(), directions.data(),
                   enzyme_const, k, enzyme_dupv, sizeof(State), value.data(), columns.data());
  for (int i = 0; i < substances; i++)
    for (int j = 0; j < substances; j++) rows[i][j] = columns[j][i];
  return rows;
}

static State solve(Matrix a, State b) {
  for (int p = 0; p < substances; p++) {
    int best = p;
    for (int i = p + 1; i < substances; i++)
      if (std::fabs(a[i][p]) > std::fabs(a[best][p])) best = i;
    std::swap(a[p], a[best]);
    std::swap(b[p], b[best]);
    for (int i = p + 1; i < substances; i++) {
      const double factor = a[i][p] / a[p][p];
      for (int j = p; j < substances; j++) a[i][j] -= factor * a[p][j];
      b[i] -= factor * b[p];
    }
  }
  for (int i = substances; i-- > 0;) {
    for (int j = i + 1; j < substances; j++) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

// One implicit step: next = y + h * rates(next), by Newton's method.
static State step(const State &y, const double *k, double h) {
  State next = y, f;
  for (int round = 0; round < 20; round++) {
    Matrix system = jacobian(next, k, f);
    State residual;
    double size = 0;
    for (int i = 0; i < substances; i++) {
      for (int j = 0; j < substances; j++) system[i][j] = (i == j) - h * system[i][j];
      residual[i] = y[i] + h * f[i] - next[i];
      size = std::max(size, std::fabs(residual[i]));
    }
    if (size < 1e-15) break;
    const State change = solve(system, residual);
    for (int i = 0; i < substances; i++) next[i] += change[i];
  }
  return next;
}

// What is differentiated as a whole: the first moments of the reaction, by explicit steps of fourth order.
static void react(const double *k, double *y) {
  const double h = 2e-4;
  for (int t = 0; t < 500; t++) {
    double a[3], b[3], c[3], d[3], at[3];
    rates(y, k, a);
    for (int i = 0; i < 3; i++) at[i] = y[i] + h / 2 * a[i];
    rates(at, k, b);
    for (int i = 0; i < 3; i++) at[i] = y[i] + h / 2 * b[i];
    rates(at, k, c);
    for (int i = 0; i < 3; i++) at[i] = y[i] + h * c[i];
    rates(at, k, d);
    for (int i = 0; i < 3; i++) y[i] += h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d[i]);
  }
}

int main() {
  const double k[constants] = {0.04, 3e7, 1e4};
  State y{1, 0, 0}, f;
  const Matrix j = jacobian({0.9, 1e-5, 0.1}, k, f);
  expect("d rate 0 / d y 1", j[0][1], k[2] * 0.1, 1e-14);
  expect("d rate 1 / d y 1", j[1][1], -k[2] * 0.1 - 2 * k[1] * 1e-5, 1e-14);
  expect("d rate 2 / d y 0", j[2][0], 0, 0);

  double time = 0;
  for (double h = 1e-6; time < 40; time += h, h = std::min(h * 1.01, 40 - time + 1e-300)) y = step(y, k, h);
  expect("nothing is lost", y[0] + y[1] + y[2], 1, 1e-12);
  expect("y 0 after 40 s", y[0], 0.7158, 1e-3);  // the reference solution; steps of first order come this close
  expect("y 2 after 40 s", y[2], 0.2842, 1e-3);
  std::printf("after %.0f s: %.3f, %.3f and %.3f\n", time, y[0], y[1], y[2]);

  double d_k[constants][constants] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, columns[constants][substances] = {};
  double start[substances] = {1, 0, 0}, end[substances] = {1, 0, 0};
  __enzyme_fwddiff((void *)react, enzyme_width, constants, enzyme_dupv, sizeof d_k[0], k, d_k, enzyme_dupv,
                   sizeof columns[0], end, columns);
  double rows[substances][constants] = {}, seeds[substances][substances] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  __enzyme_autodiff((void *)react, enzyme_width, substances, enzyme_dupv, sizeof rows[0], k, rows, enzyme_dupv,
                    sizeof seeds[0], start, seeds);
  for (int i = 0; i < substances; i++)
    for (int c = 0; c < constants; c++) expect("rows and columns", rows[i][c] * k[c], columns[c][i] * k[c], 1e-12);
  for (int c = 0; c < constants; c++) {
    double more[constants] = {k[0], k[1], k[2]}, less[constants] = {k[0], k[1], k[2]}, up[3] = {1, 0, 0}, down[3] = {1, 0, 0};
    more[c] *= 1 + 1e-4, less[c] *= 1 - 1e-4;
    react(more, up), react(less, down);
    expect("against differences", rows[0][c] * k[c], (up[0] - down[0]) / 2e-4, 1e-9);
  }
  return wrong();
}
