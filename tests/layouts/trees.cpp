// unique_ptr and shared_ptr trees, std::variant nodes, std::optional, std::function.
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
struct node { double value; std::unique_ptr<node> left, right; };
static void insert(std::unique_ptr<node> &t, double v) { if (!t) t = std::unique_ptr<node>(new node{v, nullptr, nullptr}); else insert(v < t->value ? t->left : t->right, v); }
static double fold(const node *t, const std::function<double(double, double)> &f, double s) { if (!t) return s; s = fold(t->left.get(), f, s); s = f(s, t->value); return fold(t->right.get(), f, s); }
static std::optional<double> largest(const std::vector<double> &v) { if (v.empty()) return std::nullopt; double m = v[0]; for (double e : v) if (e > m) m = e; return m; }
extern "C" double loss(const double *x, long n) {
  std::unique_ptr<node> root;
  for (long i = 0; i < n; i++) insert(root, x[i] + 0.1 * i);
  double c = x[0];
  double s = fold(root.get(), [c](double a, double b) { return a * 0.7 + std::sin(b * c); }, 1.0);
  auto shared = std::make_shared<std::vector<double>>(x, x + n);
  auto other = shared;
  (*other)[1] *= s;
  return s + largest(*shared).value_or(0) * (*shared)[1];
}
