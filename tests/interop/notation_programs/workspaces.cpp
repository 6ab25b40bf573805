// The same in containers: static, global, of each thread; grown by main, by the value's call and by derivatives.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>
int enzyme_dup, enzyme_const;
template <typename T, typename... A> T __enzyme_autodiff(void *, A...);
template <typename T, typename... A> T __enzyme_fwddiff(void *, A...);
using rows = std::vector<double>;

static double assigned(const double *x, long n) {
  static rows b;
  b.assign(x, x + n);
  for (long i = 0; i < n; i++) b.push_back(b[i] * x[0]);
  double s = 0;
  for (double v : b) s = 0.9 * s + v * v;
  return s;
}
rows pushed_rows;
static double pushed(const double *x, long n) {
  pushed_rows.clear();
  for (long i = 0; i < n; i++) pushed_rows.push_back(x[i] * x[0]);
  double s = 0;
  for (double v : pushed_rows) s = 0.9 * s + v * v;
  return s;
}
static rows one, two;
static double swapped(const double *x, long n) {
  one.assign(x, x + n);
  two.resize(n);
  for (int t = 0; t < 3; t++) {
    for (long i = 0; i < n; i++) two[i] = one[i] * one[(i + 1) % n];
    std::swap(one, two);
  }
  double s = 0;
  for (double v : one) s = 0.9 * s + v;
  return s;
}
static thread_local rows mine;
static std::unique_ptr<double[]> held;
static long room;
static double owned(const double *x, long n) {
  if ((long)mine.size() < n) mine.resize(n);
  if (room < n) held = std::make_unique<double[]>(n), room = n;
  for (long i = 0; i < n; i++) mine[i] = x[i] * x[0], held[i] = mine[i] * mine[i];
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + held[i] * mine[n - 1 - i];
  return s;
}
static double (*level) = (double *)malloc(sizeof(double) * 64);
static double (*rest)[8] = (double (*)[8])malloc(sizeof(double) * 64);
static double constructed(const double *x, long n) {
  for (long i = 0; i < n; i++) level[i] = x[i] * x[i];
  for (long i = 0; i < n; i++) rest[i % 5][i / 5] = std::sin(level[i]);
  double s = 0;
  for (long i = 0; i < n; i++) s += rest[i % 5][i / 5] * level[i];
  return std::sqrt(s);
}
static std::vector<rows> table(4, rows(16));
static double nested(const double *x, long n) {
  for (long i = 0; i < 4; i++)
    for (long j = 0; j < n; j++) table[i][j] = x[j] * x[i % n];
  double s = 0;
  for (const rows &row : table)
    for (long j = 0; j < n; j++) s = 0.9 * s + row[j] * row[n - 1 - j];
  return s;
}
static std::vector<rows> lists;
static double filled(const double *x, long n) {
  for (rows &list : lists) list.clear();
  for (long i = 0; i < 2 * n; i++) lists[i % lists.size()].push_back(x[i % n] * x[i / 2]);
  double s = 0;
  for (const rows &list : lists)
    for (double v : list) s = 0.9 * s + v * v;
  return s;
}
static std::vector<std::vector<rows>> cube(2, std::vector<rows>(3, rows(16)));
static double deep(const double *x, long n) {
  double s = 0;
  for (auto &plane : cube)
    for (auto &row : plane)
      for (long j = 0; j < n; j++) row[j] = std::sin(x[j] * x[0] + s), s = 0.9 * s + row[j] * row[j];
  return std::sqrt(s) + cube[1][2][0];
}

static void near(const char *what, double a, double b) {
  if (!(std::fabs(a - b) < 2e-5 * (1 + std::fabs(b)))) { std::printf("%s %.15g %.15g\n", what, a, b); std::exit(1); }
}
template <double (*f)(const double *, long)> void all(const char *what, const double *x, long n) {
  rows g(n), y(x, x + n), d(n);
  __enzyme_autodiff<double>((void *)f, enzyme_dup, x, g.data(), enzyme_const, n);
  double sum = 0;
  for (long i = 0; i < n; i++) {
    y[i] = x[i] + 1e-5;
    double above = f(y.data(), n);
    y[i] = x[i] - 1e-5;
    near(what, g[i], (above - f(y.data(), n)) / 2e-5);
    y[i] = x[i];
    sum += g[i] * (d[i] = 0.3 - 0.1 * i);
  }
  near(what, __enzyme_fwddiff<double>((void *)f, enzyme_dup, x, d.data(), enzyme_const, n), sum);
}
int main() {
  double x[12] = {0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8, 1.1, 0.6, 0.35, 0.45, 0.95};
  pushed_rows.reserve(2);
  owned(x, 2);
  lists.resize(3);
  for (long n : {4L, 4L, 9L, 3L}) {
    all<assigned>("assigned", x, n);
    all<pushed>("pushed", x, n);
    all<swapped>("swapped", x, n);
    all<owned>("owned", x, n);
    all<constructed>("constructed", x, n);
    all<nested>("nested", x, n);
    all<filled>("filled", x, n);
    all<deep>("deep", x, n);
    if (n == 9) pushed_rows.reserve(100), rows(50).swap(one), mine = rows();
  }
  std::puts("all right");
}
