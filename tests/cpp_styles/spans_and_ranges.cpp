// Spans of one vector, a view with strides of its own, filtered and reversed ranges.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ranges>
#include <span>
#include <vector>
template <class T> struct View {
  T *p;
  std::array<size_t, 2> ext, str;
  T &operator()(size_t i, size_t j) const { return p[i * str[0] + j * str[1]]; }
  View<T> t() const { return {p, {ext[1], ext[0]}, {str[1], str[0]}}; }
};
static double trace(View<const double> v) {
  double s = 0;
  for (size_t i = 0; i < std::min(v.ext[0], v.ext[1]); i++) s += v(i, i) * v(i, i);
  return s;
}
static void smooth(std::span<double> u) {
  std::vector<double> w(u.begin(), u.end());
  for (size_t i = 1; i + 1 < u.size(); i++) u[i] = 0.5 * w[i] + 0.25 * (w[i - 1] + std::sin(w[i + 1]));
}
extern "C" double loss(const double *x, long n) {
  std::vector<double> d(n * 2);
  for (long i = 0; i < n; i++) {
    d[2 * i] = x[i];
    d[2 * i + 1] = x[i] * x[(i + 1) % n];
  }
  std::span<double> all(d);
  smooth(all.subspan(2, 6));
  smooth(all.first(5));
  smooth(all);
  View<double> v{d.data(), {3, 4}, {4, 1}};
  auto w = v.t();
  for (size_t i = 0; i < 4; i++)
    for (size_t j = 0; j < 3; j++) w(i, j) *= 1.0 + 0.1 * v(j, (i + 1) % 4);
  double s = trace({d.data(), {3, 4}, {4, 1}}) + trace({d.data(), {4, 3}, {1, 4}});
  for (double e : all | std::views::filter([](double e) { return e > 0.3; }) |
                      std::views::transform([](double e) { return e * e; }))
    s += e;
  for (auto i : std::views::iota(0, (int)n) | std::views::reverse) s = s * 0.9 + x[i];
  return s;
}
