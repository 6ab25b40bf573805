// biquad cascades with state, polymorphic filter chain, ring buffers, lifting wavelets, in place
#include <array>
#include <cmath>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <map>
#include <vector>
class Filter { public: virtual ~Filter() = default; virtual double step(double v) = 0;
  virtual std::string_view name() const = 0; };
class Biquad : public Filter { std::array<double, 3> b; std::array<double, 2> a; double z1 = 0, z2 = 0;
  public: Biquad(double f, double q, bool high) {
  double w = 2 * M_PI * f, al = std::sin(w) / (2 * q), c = std::cos(w), a0 = 1 + al;
  b = high ? std::array<double, 3>{(1 + c) / 2 / a0, -(1 + c) / a0, (1 + c) / 2 / a0}
  : std::array<double, 3>{(1 - c) / 2 / a0, (1 - c) / a0, (1 - c) / 2 / a0}; a = {-2 * c / a0, (1 - al) / a0};
  } double step(double v) override { double y = b[0] * v + z1; z1 = b[1] * v - a[0] * y + z2;
  z2 = b[2] * v - a[1] * y; return y; } std::string_view name() const override { return "biquad"; } };
class Delay : public Filter { std::vector<double> ring; std::size_t at = 0; double fb;
  public: Delay(int n, double f) : ring(n), fb(f) {} double step(double v) override { double o = ring[at];
  ring[at] = v + fb * o; at = (at + 1) % ring.size(); return v + 0.5 * o;
  } std::string_view name() const override { return "delay"; } };
class Shaper : public Filter { double g;
  public: explicit Shaper(double d) : g(d) {} double step(double v) override { return std::tanh(g * v) / g;
  } std::string_view name() const override { return "shaper"; } };
class Chain : public Filter { std::list<std::unique_ptr<Filter>> fs;
  std::map<std::string, int, std::less<>> counts;
  public: template <class F, class... A> Chain &add(A &&...a) {
  fs.push_back(std::make_unique<F>(std::forward<A>(a)...)); counts[std::string(fs.back()->name())]++; return *this;
  } double step(double v) override { for (auto &f : fs) v = f->step(v); return v;
  } std::string_view name() const override { return "chain";
  } int count(std::string_view s) const { auto i = counts.find(s); return i == counts.end() ? 0 : i->second; } };
static void cdf53(std::vector<double> &s, int lev) { for (std::size_t n = s.size(); lev-- && n >= 4;
  n /= 2) { for (std::size_t i = 1; i < n; i += 2) s[i] -= 0.5 * (s[i - 1] + (i + 1 < n ? s[i + 1] : s[i - 1]));
  for (std::size_t i = 0; i < n; i += 2) s[i] += 0.25 * ((i ? s[i - 1] : s[i + 1]) + s[i + 1]);
  std::vector<double> t(n); for (std::size_t i = 0; i < n; i++) t[i % 2 ? n / 2 + i / 2 : i / 2] = s[i];
  std::copy(t.begin(), t.end(), s.begin()); } }
extern "C" double loss(const double *x, long n) { Chain c;
  c.add<Biquad>(0.05 + 0.05 * x[0], 0.7 + x[1], false).add<Delay>(5,
  0.3 * x[2]).add<Shaper>(1 + x[3]).add<Biquad>(0.02 * (1 + x[4]), 0.8, true);
  auto inner = std::make_unique<Chain>(); inner->add<Delay>(3, 0.2).add<Shaper>(0.5 + x[5]); std::vector<double> y;
  for (int i = 0; i < 32; i++) { double v = std::sin(0.4 * i) + 0.1 * x[i % n];
  y.push_back(c.step(v) + inner->step(v)); } cdf53(y, 3); double s = 0; for (std::size_t i = 0; i < y.size();
  i++) s += y[i] * y[i] / (1 + i); return s * (c.count("biquad") + inner->count("delay")); }
