// A sparse matrix as a map from pairs of places, beside its diagonal.
#include <cmath>
#include <map>
#include <vector>
class Sparse {
  std::map<std::pair<int, int>, double> a;
  std::vector<double> diag;
  int n;

public:
  explicit Sparse(int n) : diag(n, 1.0), n(n) {}
  void add(int i, int j, double v) {
    if (i == j)
      diag[i] += v;
    else
      a[{i, j}] += v;
  }
  std::vector<double> times(const std::vector<double> &v) const {
    std::vector<double> r(n);
    for (int i = 0; i < n; i++) r[i] = diag[i] * v[i];
    for (auto &[ij, w] : a) r[ij.first] += w * v[ij.second];
    return r;
  }
};
extern "C" double loss(const double *x, long n) {
  Sparse m(n);
  for (int i = 0; i < n; i++) {
    m.add(i, i, x[i]);
    m.add(i, (i + 1) % n, x[i] * x[(i + 1) % n]);
    m.add((i + 2) % n, i, std::sin(x[i]));
  }
  std::vector<double> v(x, x + n);
  v = m.times(v);
  v = m.times(v);
  double s = 0;
  for (double e : v) s += e * e;
  return s;
}
