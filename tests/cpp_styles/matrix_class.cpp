// A matrix class with checked places, LU with row exchanges, results as tuples and optionals.
#include <cmath>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>
template <class T> class Matrix {
  std::vector<T> d;
  int r, c;

public:
  Matrix(int r, int c, T v = T()) : d(r * c, v), r(r), c(c) {}
  T &operator()(int i, int j) {
    if (i >= r || j >= c) throw std::out_of_range("m");
    return d[i * c + j];
  }
  const T &operator()(int i, int j) const { return d[i * c + j]; }
  int rows() const { return r; }
  int cols() const { return c; }
  Matrix T_() const {
    Matrix t(c, r);
    for (int i = 0; i < r; i++)
      for (int j = 0; j < c; j++) t(j, i) = (*this)(i, j);
    return t;
  }
};
template <class T> Matrix<T> operator*(const Matrix<T> &a, const Matrix<T> &b) {
  Matrix<T> m(a.rows(), b.cols());
  for (int i = 0; i < a.rows(); i++)
    for (int j = 0; j < b.cols(); j++)
      for (int k = 0; k < a.cols(); k++) m(i, j) += a(i, k) * b(k, j);
  return m;
}
static std::tuple<Matrix<double>, std::vector<int>, int> lu(Matrix<double> a) {
  int n = a.rows(), sign = 1;
  std::vector<int> p(n);
  for (int i = 0; i < n; i++) p[i] = i;
  for (int k = 0; k < n; k++) {
    int b = k;
    for (int i = k + 1; i < n; i++)
      if (std::fabs(a(i, k)) > std::fabs(a(b, k))) b = i;
    if (b != k) {
      for (int j = 0; j < n; j++) std::swap(a(k, j), a(b, j));
      std::swap(p[k], p[b]);
      sign = -sign;
    }
    for (int i = k + 1; i < n; i++) {
      a(i, k) /= a(k, k);
      for (int j = k + 1; j < n; j++) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return {a, p, sign};
}
static std::optional<std::vector<double>> solve(const Matrix<double> &a, const std::vector<double> &b) {
  auto [m, p, sign] = lu(a);
  int n = a.rows();
  std::vector<double> y(n);
  for (int i = 0; i < n; i++) {
    if (m(i, i) == 0) return std::nullopt;
    y[i] = b[p[i]];
    for (int j = 0; j < i; j++) y[i] -= m(i, j) * y[j];
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) y[i] -= m(i, j) * y[j];
    y[i] /= m(i, i);
  }
  return y;
}
extern "C" double loss(const double *x, long n) {
  Matrix<double> a(n, n);
  std::vector<double> b(n);
  for (int i = 0; i < n; i++) {
    b[i] = x[i];
    for (int j = 0; j < n; j++) a(i, j) = std::sin(3.0 * x[i] * (j + 1) + i) + (i == j);
  }
  auto m = a * a.T_();
  auto s = solve(a, b);
  auto t = solve(m, b);
  auto [f, p, sign] = lu(m);
  double r = f(n - 1, n - 1) * sign;
  if (s)
    for (double v : *s) r += v * v;
  return r + t.value_or(std::vector<double>(n))[1];
}
