// A class hierarchy with containers of owning pointers, layers with virtual functions.
#include <cmath>
#include <memory>
#include <vector>
struct layer { virtual ~layer() = default; virtual std::vector<double> apply(const std::vector<double> &in) const = 0; };
struct dense : layer {
  std::vector<std::vector<double>> w;
  dense(int n, int m, const double *x, long k) : w(m, std::vector<double>(n)) { for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) w[i][j] = x[(i + 2 * j) % k]; }
  std::vector<double> apply(const std::vector<double> &in) const override { std::vector<double> out; for (auto &row : w) { double s = 0; for (size_t j = 0; j < row.size(); j++) s += row[j] * in[j]; out.push_back(s); } return out; }
};
struct squash : layer { std::vector<double> apply(const std::vector<double> &in) const override { auto out = in; for (double &v : out) v = std::tanh(v); return out; } };
extern "C" double loss(const double *x, long n) {
  std::vector<std::unique_ptr<layer>> net;
  net.push_back(std::make_unique<dense>(2, 3, x, n));
  net.push_back(std::make_unique<squash>());
  net.push_back(std::make_unique<dense>(3, 1, x, n));
  std::vector<double> v{x[0], 0.5};
  for (auto &l : net) v = l->apply(v);
  return v[0];
}
