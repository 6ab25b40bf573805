// A particle filter for a target seen by range and bearing; particles are structs in vectors, noise has its own generator.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

class Lcg {
  unsigned long long s_;
  bool have_ = false;
  double spare_ = 0;

public:
  explicit Lcg(unsigned long long s) : s_(s) {}
  double uniform() {
    s_ = s_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return ((s_ >> 33) + 0.5) / 2147483648.0;
  }
  double normal() {
    if (have_) {
      have_ = false;
      return spare_;
    }
    double u, v, r;
    do {
      u = 2 * uniform() - 1;
      v = 2 * uniform() - 1;
      r = u * u + v * v;
    } while (r >= 1 || r == 0);
    double f = std::sqrt(-2 * std::log(r) / r);
    spare_ = v * f;
    have_ = true;
    return u * f;
  }
};

struct State {
  double px, py, vx, vy;
  State &operator+=(const State &o) {
    px += o.px; py += o.py; vx += o.vx; vy += o.vy;
    return *this;
  }
  State operator*(double s) const { return {px * s, py * s, vx * s, vy * s}; }
};

struct Particle {
  State state;
  double weight;
  int ancestor;
  bool alive;
};

struct Measurement {
  int sensor;
  double range, bearing;
};

class Sensor {
protected:
  double x_, y_;

public:
  Sensor(double x, double y) : x_(x), y_(y) {}
  virtual ~Sensor() = default;
  virtual double log_likelihood(const State &s, const Measurement &m) const = 0;
};
class RangeSensor : public Sensor {
  double sigma_;

public:
  RangeSensor(double x, double y, double sigma) : Sensor(x, y), sigma_(sigma) {}
  double log_likelihood(const State &s, const Measurement &m) const override {
    double r = std::hypot(s.px - x_, s.py - y_), e = (r - m.range) / sigma_;
    return -0.5 * e * e - std::log(sigma_);
  }
};
class FullSensor : public Sensor {
  double sr_, sb_;

public:
  FullSensor(double x, double y, double sr, double sb) : Sensor(x, y), sr_(sr), sb_(sb) {}
  double log_likelihood(const State &s, const Measurement &m) const override {
    double r = std::hypot(s.px - x_, s.py - y_), b = std::atan2(s.py - y_, s.px - x_);
    double er = (r - m.range) / sr_, eb = std::sin(b - m.bearing) / sb_;
    return -0.5 * (er * er + eb * eb) - std::log(sr_ * sb_);
  }
};

class Filter {
  std::vector<Particle> particles_, next_;
  std::vector<std::unique_ptr<Sensor>> sensors_;
  std::vector<State> path_;
  Lcg rng_;
  double noise_, evidence_ = 0;
  int resampled_ = 0;

public:
  Filter(int count, State start, double noise, unsigned long long seed) : rng_(seed), noise_(noise) {
    for (int i = 0; i < count; i++) {
      State s = start;
      s.px += 0.2 * rng_.normal();
      s.py += 0.2 * rng_.normal();
      particles_.push_back(Particle{s, 1.0 / count, i, true});
    }
  }
  void attach(std::unique_ptr<Sensor> s) { sensors_.push_back(std::move(s)); }

  void predict(double dt) {
    for (auto &p : particles_) {
      double ax = noise_ * rng_.normal(), ay = noise_ * rng_.normal();
      p.state.px += dt * p.state.vx + 0.5 * dt * dt * ax;
      p.state.py += dt * p.state.vy + 0.5 * dt * dt * ay;
      p.state.vx += dt * ax;
      p.state.vy += dt * ay;
    }
  }
  void update(const Measurement &m) {
    std::vector<double> logs(particles_.size());
    for (std::size_t i = 0; i < particles_.size(); i++)
      logs[i] = std::log(particles_[i].weight) + sensors_[m.sensor]->log_likelihood(particles_[i].state, m);
    double top = *std::max_element(logs.begin(), logs.end()), sum = 0;
    for (double &l : logs) sum += (l = std::exp(l - top));
    for (std::size_t i = 0; i < logs.size(); i++) {
      particles_[i].weight = logs[i] / sum;
      particles_[i].alive = particles_[i].weight > 1e-12;
    }
    evidence_ += top + std::log(sum);
    State mean{0, 0, 0, 0};
    for (const auto &p : particles_)
      if (p.alive) mean += p.state * p.weight;
    path_.push_back(mean);
  }
  double effective() const {
    return 1.0 / std::accumulate(particles_.begin(), particles_.end(), 0.0, [](double s, const Particle &p) { return s + p.weight * p.weight; });
  }
  void resample() {
    std::vector<double> cumulative;
    double c = 0;
    for (const auto &p : particles_) cumulative.push_back(c += p.weight);
    double u = rng_.uniform() / particles_.size();
    next_.clear();
    for (std::size_t i = 0; i < particles_.size(); i++) {
      double at = u + (double)i / particles_.size();
      auto it = std::lower_bound(cumulative.begin(), cumulative.end(), at);
      std::size_t j = std::min<std::size_t>(it - cumulative.begin(), particles_.size() - 1);
      Particle child = particles_[j];
      child.ancestor = (int)j;
      child.weight = 0.5 * child.weight + 0.5 / particles_.size();
      next_.push_back(child);
    }
    std::swap(particles_, next_);
    resampled_++;
  }
  void step(const Measurement &m, double dt) {
    predict(dt);
    update(m);
    if (effective() < 0.6 * particles_.size()) resample();
  }
  double evidence() const { return evidence_; }
  int resampled() const { return resampled_; }
  double roughness() const {
    double s = 0;
    for (std::size_t i = 2; i < path_.size(); i++) {
      double dx = path_[i].px - 2 * path_[i - 1].px + path_[i - 2].px, dy = path_[i].py - 2 * path_[i - 1].py + path_[i - 2].py;
      s += dx * dx + dy * dy;
    }
    return s;
  }
  std::array<double, 4> last() const {
    const State &s = path_.back();
    return {s.px, s.py, s.vx, s.vy};
  }
};

static std::vector<Measurement> observations() {
  std::vector<Measurement> seen;
  double px = 0.1, py = 0.2;
  for (int k = 0; k < 6; k++) {
    px += 0.4;
    py += 0.25 + 0.02 * k;
    if (k % 2) seen.push_back({0, std::hypot(px + 1, py), 0});
    else seen.push_back({1, std::hypot(px, py + 2), std::atan2(py + 2, px)});
  }
  return seen;
}

extern "C" double loss(const double *x, long n) {
  State start{x[0] - 0.4, x[1] - 0.2, x[2], x[3]};
  Filter filter(20, start, 0.1 + x[4] * x[4], 12345);
  filter.attach(std::make_unique<RangeSensor>(-1, 0, 0.2 + x[5] * x[5]));
  filter.attach(std::make_unique<FullSensor>(0, -2, 0.2 + x[5], 0.15 + 0.1 * x[4]));
  for (const Measurement &m : observations()) filter.step(m, 0.5);
  auto end = filter.last();
  double s = 0;
  for (double e : end) s += e * e;
  return -filter.evidence() + 3 * filter.roughness() + 0.2 * s + 0.01 * filter.resampled();
}
