// Tables of std::function with captures of 0 to 16 bytes, and one that calls itself.
#include <array>
#include <cmath>
#include <functional>
#include <vector>
struct Layer {
  std::function<double(double)> act;
  double w;
};
extern "C" double loss(const double *x, long n) {
  double scale = x[0] + 1;
  std::array<std::function<double(double)>, 3> acts{[](double v) { return std::tanh(v); },
                                                    [&scale](double v) { return scale * v * v; },
                                                    [scale, n](double v) { return std::exp(-v / n) * scale; }};
  std::vector<Layer> net;
  for (long i = 0; i < n; i++) net.push_back({acts[i % 3], x[i]});
  double h = 0.3;
  for (auto &l : net) {
    h = l.act(h * l.w + 0.1);
    scale += 0.1 * h;
  }
  std::function<double(double, int)> rec = [&](double v, int d) -> double {
    return d ? std::sin(v) + rec(v * x[d], d - 1) : v;
  };
  return h + rec(h, 4);
}
