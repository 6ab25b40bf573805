// Small fixed matrices by templates, expression objects, operators, arrays of structs of arrays.
#include <array>
#include <cmath>
#include <vector>
template <int R, int C> struct mat { std::array<std::array<double, C>, R> a{}; double &operator()(int i, int j) { return a[i][j]; } double operator()(int i, int j) const { return a[i][j]; } };
template <int R, int K, int C> mat<R, C> operator*(const mat<R, K> &p, const mat<K, C> &q) { mat<R, C> r; for (int i = 0; i < R; i++) for (int j = 0; j < C; j++) for (int k = 0; k < K; k++) r(i, j) += p(i, k) * q(k, j); return r; }
struct pose { mat<3, 3> r; mat<3, 1> t; bool fixed; };
static mat<3, 3> rotation(double u) { mat<3, 3> m; m(0, 0) = std::cos(u); m(0, 1) = -std::sin(u); m(1, 0) = std::sin(u); m(1, 1) = std::cos(u); m(2, 2) = 1; return m; }
extern "C" double loss(const double *x, long n) {
  std::vector<pose> chain;
  for (long i = 0; i < n; i++) { pose p{rotation(x[i]), {}, i == 2}; p.t(0, 0) = x[i]; p.t(2, 0) = 1; chain.emplace_back(p); }
  mat<3, 1> v; v(0, 0) = 1;
  for (const pose &p : chain) { auto w = p.r * v; for (int i = 0; i < 3; i++) v(i, 0) = p.fixed ? v(i, 0) : w(i, 0) + p.t(i, 0); }
  return v(0, 0) * v(1, 0) + v(2, 0);
}
