// Sparse matrices kept as ordered maps of (row, column): assembly of a resistor grid, products, conjugate gradients.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

using Index = std::pair<int, int>;
using Vector = std::vector<double>;

class SparseMatrix {
  int rows_, cols_;
  std::map<Index, double> entries_;

public:
  SparseMatrix(int rows, int cols) : rows_(rows), cols_(cols) {}
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  std::size_t count() const { return entries_.size(); }

  double &operator()(int i, int j) {
    if (i < 0 || i >= rows_ || j < 0 || j >= cols_) throw std::out_of_range("matrix index");
    return entries_[Index(i, j)];
  }
  double at(int i, int j) const {
    auto it = entries_.find({i, j});
    return it == entries_.end() ? 0.0 : it->second;
  }
  void add(int i, int j, double v) { (*this)(i, j) += v; }

  Vector operator*(const Vector &x) const {
    Vector y(rows_, 0.0);
    for (const auto &[ij, v] : entries_) y[ij.first] += v * x[ij.second];
    return y;
  }
  SparseMatrix transposed() const {
    SparseMatrix t(cols_, rows_);
    for (const auto &e : entries_) t.entries_.emplace(Index{e.first.second, e.first.first}, e.second);
    return t;
  }
  friend SparseMatrix operator*(const SparseMatrix &a, const SparseMatrix &b) {
    SparseMatrix c(a.rows_, b.cols_);
    for (const auto &[ik, v] : a.entries_) {
      auto lo = b.entries_.lower_bound({ik.second, 0});
      for (auto it = lo; it != b.entries_.end() && it->first.first == ik.second; ++it)
        c.entries_[{ik.first, it->first.second}] += v * it->second;
    }
    return c;
  }
  friend SparseMatrix operator+(SparseMatrix a, const SparseMatrix &b) {
    for (const auto &[ij, v] : b.entries_) a.entries_[ij] += v;
    return a;
  }
  SparseMatrix &operator*=(double s) {
    for (auto &[ij, v] : entries_) v *= s;
    return *this;
  }
  void prune(double tolerance) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (std::fabs(it->second) < tolerance) it = entries_.erase(it);
      else ++it;
    }
  }
  Vector diagonal() const {
    Vector d(rows_, 0.0);
    for (int i = 0; i < rows_; i++) d[i] = at(i, i);
    return d;
  }
  double frobenius() const {
    return std::sqrt(std::accumulate(entries_.begin(), entries_.end(), 0.0,
                                     [](double s, const std::pair<const Index, double> &e) { return s + e.second * e.second; }));
  }
};

static double dot(const Vector &a, const Vector &b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

static Vector conjugate_gradients(const SparseMatrix &a, const Vector &b, int iterations) {
  Vector x(b.size(), 0.0), r = b, z(b.size()), d = a.diagonal();
  for (std::size_t i = 0; i < r.size(); i++) z[i] = r[i] / d[i];
  Vector p = z;
  double rz = dot(r, z);
  for (int k = 0; k < iterations && rz > 1e-28; k++) {
    Vector q = a * p;
    double alpha = rz / dot(p, q);
    for (std::size_t i = 0; i < x.size(); i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      z[i] = r[i] / d[i];
    }
    double next = dot(r, z), beta = next / rz;
    rz = next;
    std::transform(z.begin(), z.end(), p.begin(), p.begin(), [beta](double zi, double pi) { return zi + beta * pi; });
  }
  return x;
}

struct Grid {
  int width, height;
  int node(int i, int j) const { return i * width + j; }
  int size() const { return width * height; }
};

static SparseMatrix laplacian(const Grid &g, const double *x, long n) {
  SparseMatrix m(g.size(), g.size());
  long used = 0;
  auto stamp = [&](int a, int b) {
    double c = std::exp(x[used++ % n]);
    m.add(a, a, c);
    m.add(b, b, c);
    m.add(a, b, -c);
    m.add(b, a, -c);
  };
  for (int i = 0; i < g.height; i++)
    for (int j = 0; j < g.width; j++) {
      if (j + 1 < g.width) stamp(g.node(i, j), g.node(i, j + 1));
      if (i + 1 < g.height) stamp(g.node(i, j), g.node(i + 1, j));
    }
  for (int k = 0; k < g.size(); k++) m.add(k, k, 0.1 + 0.05 * k);
  return m;
}

extern "C" double loss(const double *x, long n) {
  Grid g{3, 3};
  SparseMatrix m = laplacian(g, x, n);
  Vector b(g.size());
  for (int k = 0; k < g.size(); k++) b[k] = std::sin(k + 1.0) + x[k % n] * 0.5;
  Vector u = conjugate_gradients(m, b, 12);
  SparseMatrix normal = m.transposed() * m;
  normal *= 0.25;
  SparseMatrix sum = normal + m;
  sum.prune(1e-9);
  Vector w = sum * u;
  return dot(u, w) + 0.1 * sum.frobenius() + 0.01 * sum.count();
}
