// A network of layers behind a base class learns two moons by gradient descent. The derivative builds the layers itself.
#include "check.h"
#include <cmath>
#include <memory>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename... T> double __enzyme_autodiff(void *, T...);
template <typename R, typename... T> R __enzyme_fwddiff(void *, T...);

using Values = std::vector<double>;

struct Layer {
  virtual ~Layer() = default;
  virtual Values forward(const Values &x) const = 0;
};

struct Dense : Layer {
  size_t in, out;
  Values weight, bias;
  Dense(size_t in, size_t out, const double *&p) : in(in), out(out), weight(p, p + in * out), bias(out) {
    p += in * out;
    for (double &b : bias) b = *p++;
  }
  Values forward(const Values &x) const override {
    Values y(bias);
    for (size_t i = 0; i < out; i++)
      for (size_t j = 0; j < in; j++) y[i] += weight[i * in + j] * x[j];
    return y;
  }
};

struct Activation : Layer {
  Values forward(const Values &x) const override {
    Values y;
    for (double v : x) y.push_back(std::tanh(v));
    return y;
  }
};

enum { hidden = 5, parameters = 2 * hidden + hidden + hidden + 1, points = 24 };

static double predict(const double *p, const double *x) {
  std::vector<std::unique_ptr<Layer>> net;
  net.push_back(std::make_unique<Dense>(2, hidden, p));
  net.push_back(std::make_unique<Activation>());
  net.push_back(std::make_unique<Dense>(hidden, 1, p));
  Values v(x, x + 2);
  for (const auto &layer : net) v = layer->forward(v);
  return v[0];
}

static double loss(const double *p, const double *x, const double *label) {
  double sum = 0;
  for (int i = 0; i < points; i++) sum += std::log1p(std::exp(-label[i] * predict(p, x + 2 * i)));
  return sum / points;
}

int main() {
  double x[2 * points], label[points], p[parameters];
  for (int i = 0; i < points; i++) {
    const double angle = 3.14159265358979 * (i / 2) / (points / 2 - 1);
    x[2 * i] = i % 2 ? 1 - std::cos(angle) : std::cos(angle);
    x[2 * i + 1] = i % 2 ? 0.5 - std::sin(angle) : std::sin(angle);
    label[i] = i % 2 ? 1 : -1;
  }
  for (int i = 0; i < parameters; i++) p[i] = std::sin(1.7 * i + 0.3);

  Values slope(parameters), toward(parameters);
  __enzyme_autodiff((void *)loss, enzyme_dup, p, slope.data(), enzyme_const, x, enzyme_const, label);
  for (int i = 0; i < parameters; i++) {
    const double h = 1e-6, before = p[i];
    p[i] = before + h;
    const double up = loss(p, x, label);
    p[i] = before - h;
    const double down = loss(p, x, label);
    p[i] = before;
    expect("reverse", slope[i], (up - down) / (2 * h), 1e-8);
    toward.assign(parameters, 0);
    toward[i] = 1;
    const double along = __enzyme_fwddiff<double>((void *)loss, enzyme_dup, p, toward.data(), enzyme_const, x,
                                                  enzyme_const, label);
    expect("forward", along, slope[i], 1e-12);
  }

  const double start = loss(p, x, label);
  for (int round = 0; round < 300; round++) {
    slope.assign(parameters, 0);
    __enzyme_autodiff((void *)loss, enzyme_dup, p, slope.data(), enzyme_const, x, enzyme_const, label);
    for (int i = 0; i < parameters; i++) p[i] -= 2 * slope[i];
  }
  int right = 0;
  for (int i = 0; i < points; i++) right += predict(p, x + 2 * i) * label[i] > 0;
  std::printf("loss %.2f, then below 0.05: %s, %d of %d points right\n", start, loss(p, x, label) < 0.05 ? "yes" : "no",
              right, points);
  return wrong();
}
