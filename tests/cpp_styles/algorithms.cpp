// Sixteen algorithms of the standard library, one after the other on the same vectors.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>
extern "C" double loss(const double *x, long n) {
  std::vector<double> a(x, x + n), b(n), c;
  std::transform(a.begin(), a.end(), b.begin(), [](double v) { return std::sin(v) * v; });
  std::transform(a.begin(), a.end(), b.begin(), b.begin(), std::multiplies<double>());
  std::partial_sum(b.begin(), b.end(), std::back_inserter(c));
  std::vector<int> idx(n);
  std::iota(idx.begin(), idx.end(), 0);
  std::sort(idx.begin(), idx.end(), [&](int i, int j) { return a[i] > a[j]; });
  double s = std::inner_product(a.begin(), a.end(), c.begin(), 0.0);
  for (long i = 0; i < n; i++) s += a[idx[i]] * (i + 1);
  std::vector<double> m = a;
  std::nth_element(m.begin(), m.begin() + n / 2, m.end());
  s += m[n / 2] * m[n / 2];
  std::rotate(a.begin(), a.begin() + 2, a.end());
  std::reverse(b.begin(), b.end());
  std::adjacent_difference(a.begin(), a.end(), b.begin());
  auto it = std::max_element(b.begin(), b.end());
  s += *it * *it * *it;
  auto part = std::stable_partition(a.begin(), a.end(), [](double v) { return v > 0.6; });
  s += std::accumulate(a.begin(), part, 1.0, [](double p, double v) { return p * v; });
  s += std::exp(-*std::lower_bound(c.begin(), c.end(), 0.3));
  a.erase(std::remove_if(a.begin(), a.end(), [](double v) { return v < 0.45; }), a.end());
  return s + std::accumulate(a.begin(), a.end(), 0.0) * a.front();
}
