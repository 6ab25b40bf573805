// Matrices of any size and type as templates: the gradient of log det A is the inverse, of x' A^-1 x minus an outer product.
#include "check.h"
#include <array>
#include <cmath>
#include <cstddef>

template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
extern int enzyme_dup, enzyme_const;

template <typename T, std::size_t n> struct Matrix {
  std::array<T, n * n> data{};
  T &operator()(std::size_t i, std::size_t j) { return data[i * n + j]; }
  const T &operator()(std::size_t i, std::size_t j) const { return data[i * n + j]; }
};
template <typename T, std::size_t n> using Vector = std::array<T, n>;

template <typename T, std::size_t n> Matrix<T, n> cholesky(const Matrix<T, n> &a) {
  Matrix<T, n> l;
  for (std::size_t j = 0; j < n; j++) {
    T diagonal = a(j, j);
    for (std::size_t k = 0; k < j; k++) diagonal -= l(j, k) * l(j, k);
    l(j, j) = std::sqrt(diagonal);
    for (std::size_t i = j + 1; i < n; i++) {
      T sum = a(i, j);
      for (std::size_t k = 0; k < j; k++) sum -= l(i, k) * l(j, k);
      l(i, j) = sum / l(j, j);
    }
  }
  return l;
}

template <typename T, std::size_t n> Vector<T, n> solve(const Matrix<T, n> &a, Vector<T, n> x) {
  const auto l = cholesky(a);
  for (std::size_t i = 0; i < n; i++) {
    for (std::size_t k = 0; k < i; k++) x[i] -= l(i, k) * x[k];
    x[i] /= l(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; k++) x[i] -= l(k, i) * x[k];
    x[i] /= l(i, i);
  }
  return x;
}

template <typename T, std::size_t n> T log_det(const Matrix<T, n> &a) {
  const auto l = cholesky(a);
  T sum = 0;
  for (std::size_t i = 0; i < n; i++) sum += 2 * std::log(l(i, i));
  return sum;
}

template <typename T, std::size_t n> T quadratic(const Matrix<T, n> &a, const Vector<T, n> &b) {
  const auto x = solve(a, b);
  T sum = 0;
  for (std::size_t i = 0; i < n; i++) sum += x[i] * b[i];
  return sum;
}

template <typename T, std::size_t n> void check(T tolerance) {
  Matrix<T, n> a, d_log, d_quadratic;
  Vector<T, n> b, d_b{};
  for (std::size_t i = 0; i < n; i++) {
    b[i] = T(1) / (i + 1);
    for (std::size_t j = 0; j < n; j++) a(i, j) = T(1) / (1 + i + j) + (i == j ? 1 : 0);
  }
  __enzyme_autodiff<void>((void *)log_det<T, n>, enzyme_dup, &a, &d_log);
  __enzyme_autodiff<void>((void *)quadratic<T, n>, enzyme_dup, &a, &d_quadratic, enzyme_dup, &b, &d_b);
  const auto x = solve(a, b);
  for (std::size_t i = 0; i < n; i++) {
    expect("d quadratic / db", d_b[i], 2 * x[i], tolerance);
    Vector<T, n> unit{};
    unit[i] = 1;
    const auto inverse = solve(a, unit);
    for (std::size_t j = 0; j <= i; j++) {  // cholesky reads the lower half, for both halves
      const T both = i == j ? 1 : 2;
      expect("d log det", d_log(i, j), both * inverse[j], tolerance);
      expect("d quadratic / dA", d_quadratic(i, j), -both * x[i] * x[j], tolerance);
    }
    for (std::size_t j = i + 1; j < n; j++) expect("upper half", d_log(i, j), 0, 0);
  }
  Matrix<T, n> direction;
  for (std::size_t i = 0; i < n * n; i++) direction.data[i] = std::sin(T(i));
  T along = 0;
  for (std::size_t i = 0; i < n * n; i++) along += direction.data[i] * d_log.data[i];
  expect("forward", __enzyme_fwddiff<T>((void *)log_det<T, n>, enzyme_dup, &a, &direction), along, tolerance);
}

int main() {
  check<double, 3>(1e-13);
  check<double, 9>(1e-12);
  check<float, 4>(1e-5f);
  return wrong();
}
