// extended Kalman filter with its own matrix class (dimension at run time, rule of five) and log likelihood
#include <cassert>
#include <cmath>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>
class Matrix { std::size_t r_ = 0, c_ = 0; double *d_ = nullptr;
public:
  Matrix() = default; Matrix(std::size_t r, std::size_t c) : r_(r), c_(c), d_(new double[r * c]()) {}
  Matrix(std::initializer_list<std::initializer_list<double>> rows) : Matrix(rows.size(), rows.begin()->size()) {
    double *p = d_; for (auto &row : rows) for (double v : row) *p++ = v; }
  Matrix(const Matrix &o) : Matrix(o.r_, o.c_) { for (std::size_t i = 0; i < r_ * c_; i++) d_[i] = o.d_[i]; }
  Matrix(Matrix &&o) noexcept { swap(o); } ~Matrix() { delete[] d_; }
  Matrix &operator=(Matrix o) noexcept { swap(o); return *this; }
  void swap(Matrix &o) noexcept { std::swap(r_, o.r_); std::swap(c_, o.c_); std::swap(d_, o.d_); }
  std::size_t rows() const { return r_; } std::size_t cols() const { return c_; }
  double &operator()(std::size_t i, std::size_t j) { if (i >= r_ || j >= c_) throw std::out_of_range("index");
    return d_[i * c_ + j]; }
  double operator()(std::size_t i, std::size_t j) const { if (i >= r_ || j >= c_) throw std::out_of_range("index");
    return d_[i * c_ + j]; }
  static Matrix identity(std::size_t n) { Matrix m(n, n); for (std::size_t i = 0; i < n; i++) m(i, i) = 1; return m; }
  Matrix transpose() const { Matrix m(c_, r_); for (std::size_t i = 0; i < r_; i++) for (std::size_t j = 0; j < c_;
    j++) m(j, i) = (*this)(i, j); return m; }
  friend Matrix operator*(const Matrix &a, const Matrix &b) {
    if (a.c_ != b.r_) throw std::invalid_argument("shape"); Matrix m(a.r_, b.c_); for (std::size_t i = 0; i < a.r_;
    i++) for (std::size_t j = 0; j < b.c_; j++) { double s = 0; for (std::size_t k = 0; k < a.c_;
    k++) s += a(i, k) * b(k, j); m(i, j) = s; } return m; }
  friend Matrix operator+(Matrix a, const Matrix &b) { for (std::size_t i = 0; i < a.r_ * a.c_;
    i++) a.d_[i] += b.d_[i]; return a; }
  friend Matrix operator-(Matrix a, const Matrix &b) { for (std::size_t i = 0; i < a.r_ * a.c_;
    i++) a.d_[i] -= b.d_[i]; return a; }
  std::pair<Matrix, double> inverse() const { std::size_t n = r_; Matrix a(*this), b = identity(n); double logdet = 0;
    for (std::size_t k = 0; k < n; k++) { std::size_t p = k; for (std::size_t i = k + 1; i < n;
      i++) if (std::abs(a(i, k)) > std::abs(a(p, k))) p = i;
      if (std::abs(a(p, k)) < 1e-14) throw std::runtime_error("singular"); if (p != k) for (std::size_t j = 0;
        j < n; j++) { std::swap(a(k, j), a(p, j)); std::swap(b(k, j), b(p, j)); }
      double d = a(k, k); logdet += std::log(std::abs(d)); for (std::size_t j = 0; j < n; j++) { a(k, j) /= d;
        b(k, j) /= d; }
      for (std::size_t i = 0; i < n; i++) if (i != k) { double f = a(i, k); for (std::size_t j = 0; j < n;
        j++) { a(i, j) -= f * a(k, j); b(i, j) -= f * b(k, j); } } }
    return {std::move(b), logdet}; }
};
struct Model { std::function<Matrix(const Matrix &)> f, F, h, H; Matrix Q, R; };
class Ekf { Model m_; Matrix x_, P_; double ll_ = 0;
public: Ekf(Model m, Matrix x, Matrix P) : m_(std::move(m)), x_(std::move(x)), P_(std::move(P)) {}
  void predict() { Matrix F = m_.F(x_); x_ = m_.f(x_); P_ = F * P_ * F.transpose() + m_.Q; }
  void update(const Matrix &z) { Matrix H = m_.H(x_), S = H * P_ * H.transpose() + m_.R;
    auto [Si, logdet] = S.inverse(); Matrix K = P_ * H.transpose() * Si, y = z - m_.h(x_);
    ll_ -= 0.5 * ((y.transpose() * Si * y)(0, 0) + logdet); x_ = x_ + K * y;
      P_ = (Matrix::identity(x_.rows()) - K * H) * P_; }
  double loglik() const { return ll_; } const Matrix &state() const { return x_; } };
extern "C" double loss(const double *x, long n) {
  double dt = 0.1, q = 0.05 + 0.02 * x[0] * x[0], r = 0.1 + 0.1 * x[1], damp = x[2];
  Model m{[=](const Matrix &s) { return Matrix{{s(0, 0) + dt * s(1, 0)}, {s(1, 0) - dt * (std::sin(s(0,
    0)) + damp * s(1, 0))}}; },
          [=](const Matrix &s) { return Matrix{{1, dt}, {-dt * std::cos(s(0, 0)), 1 - dt * damp}}; },
          [](const Matrix &s) { return Matrix{{std::sin(s(0, 0))}, {s(1, 0) * s(1, 0)}}; },
          [](const Matrix &s) { return Matrix{{std::cos(s(0, 0)), 0}, {0, 2 * s(1, 0)}};
            }, Matrix{{q, 0}, {0, q}}, Matrix{{r, 0.01}, {0.01, r * 1.5}}};
  Ekf ekf(std::move(m), Matrix{{x[3]}, {x[4]}}, Matrix{{0.5, 0}, {0, 0.5 + x[5]}});
  try { for (int k = 0; k < 10; k++) { ekf.predict(); ekf.update(Matrix{{std::sin(0.3 * k)}, {0.5 + 0.1 * k}});
    } } catch (const std::exception &) { return 1e6; }
  return -ekf.loglik() + ekf.state()(0, 0); }
