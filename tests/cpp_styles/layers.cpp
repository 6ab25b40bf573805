// A network whose layers are objects with a virtual method, owned by unique_ptr, on several samples.
#include <cmath>
#include <memory>
#include <vector>

namespace {

struct Layer {
  virtual ~Layer() = default;
  virtual std::vector<double> forward(const std::vector<double> &x) const = 0;
};

struct Dense : Layer {
  const double *w;
  int in, out;
  Dense(const double *w, int in, int out) : w(w), in(in), out(out) {}
  std::vector<double> forward(const std::vector<double> &x) const override {
    std::vector<double> y(out);
    for (int o = 0; o < out; o++) {
      double s = 0;
      for (int i = 0; i < in; i++) s += w[i] * x[(i + o) % x.size()];
      y[o] = s;
    }
    return y;
  }
};

struct Tanh : Layer {
  std::vector<double> forward(const std::vector<double> &x) const override {
    std::vector<double> y(x);
    for (auto &v : y) v = std::tanh(v);
    return y;
  }
};

struct Centred : Layer {
  std::vector<double> forward(const std::vector<double> &x) const override {
    double mean = 0;
    for (double a : x) mean += a;
    mean /= x.size();
    std::vector<double> y;
    for (double a : x) y.push_back((a - mean) * (1 + mean));
    return y;
  }
};

}  // namespace

extern "C" double loss(const double *x, long n) {
  std::vector<std::unique_ptr<Layer>> net;
  net.push_back(std::make_unique<Dense>(x, 3, 4));
  net.emplace_back(new Tanh);
  net.emplace_back(new Centred);
  net.push_back(std::make_unique<Dense>(x + 2, 4, 2));
  double sum = 0;
  for (int k = 0; k < 3; k++) {
    std::vector<double> v(x + k, x + k + 3);
    for (auto &layer : net) v = layer->forward(v);
    sum += (v[0] - 1) * (v[0] - 1) + v[0] * v[1];
  }
  return sum;
}
