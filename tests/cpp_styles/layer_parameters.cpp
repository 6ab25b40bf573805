// Layers that look their parameters up by name, which is a sum of texts.
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
class Parameters {
  std::map<std::string, std::vector<double>> data_;

 public:
  void set(const std::string &key, std::vector<double> v) { data_[key] = std::move(v); }
  const std::vector<double> &get(const std::string &key) const {
    auto it = data_.find(key);
    if (it == data_.end()) throw std::runtime_error("no parameter " + key);
    return it->second;
  }
};
struct Layer {
  std::string name;
  explicit Layer(std::string n) : name(std::move(n)) {}
  virtual double run(const Parameters &p, double in) const = 0;
  virtual ~Layer() = default;
};
struct Dense : Layer {
  using Layer::Layer;
  double run(const Parameters &p, double in) const override {
    double s = 0;
    for (double v : p.get(name + ".weight")) s += v * in;
    return std::tanh(s);
  }
};
struct Scale : Layer {
  using Layer::Layer;
  double run(const Parameters &p, double in) const override { return p.get(name + ".scale")[0] * in; }
};
extern "C" double loss(const double *x, long n) {
  Parameters p;
  p.set("first.weight", {x[0], x[1]});
  p.set("second.scale", {x[2] * x[3]});
  p.set("third.weight", {x[4]});
  std::vector<std::unique_ptr<Layer>> net;
  net.push_back(std::make_unique<Dense>("first"));
  net.push_back(std::make_unique<Scale>("second"));
  net.push_back(std::make_unique<Dense>("third"));
  double h = x[n - 1];
  for (auto &layer : net) h = layer->run(p, h);
  return h * h;
}
