// A portfolio of instruments behind one interface: virtual calls through unique_ptr, and its sensitivities at once.
#include "check.h"
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

struct Market {
  double spot, volatility, rate;
};

static double normal(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

class Instrument {
public:
  virtual ~Instrument() = default;
  virtual double price(const Market &m) const = 0;
};

class Cash : public Instrument {
public:
  explicit Cash(double amount) : amount(amount) {}
  double price(const Market &) const override { return amount; }

protected:
  double amount;
};

class Bond : public Cash {
public:
  Bond(double face, int years) : Cash(face), years(years) {}
  double price(const Market &m) const override {
    double value = amount * std::exp(-m.rate * years);
    for (int year = 1; year <= years; year++) value += 0.03 * amount * std::exp(-m.rate * year);
    return value;
  }

private:
  int years;
};

class Call : public Instrument {
public:
  Call(double strike, double maturity) : strike(strike), maturity(maturity) {}
  double d1(const Market &m) const {
    return (std::log(m.spot / strike) + (m.rate + 0.5 * m.volatility * m.volatility) * maturity) /
           (m.volatility * std::sqrt(maturity));
  }
  double price(const Market &m) const override {
    const double d = d1(m);
    return m.spot * normal(d) -
           strike * std::exp(-m.rate * maturity) * normal(d - m.volatility * std::sqrt(maturity));
  }
  const double strike, maturity;
};

// Many of another instrument: instruments hold instruments.
class Position : public Instrument {
public:
  Position(double count, std::unique_ptr<Instrument> what) : count(count), what(std::move(what)) {}
  double price(const Market &m) const override { return count * what->price(m); }

private:
  double count;
  std::unique_ptr<Instrument> what;
};

using Portfolio = std::map<std::string, std::unique_ptr<Instrument>>;

static Portfolio holdings() {
  Portfolio portfolio;
  portfolio["cash"] = std::make_unique<Cash>(1000);
  portfolio["bond"] = std::make_unique<Bond>(500, 3);
  portfolio["calls, far"] = std::make_unique<Position>(10, std::make_unique<Call>(120, 2));
  portfolio["calls, near"] = std::make_unique<Position>(-4, std::make_unique<Call>(100, 0.5));
  return portfolio;
}

static double value(const Market &market) {
  const Portfolio portfolio = holdings();
  double sum = 0;
  for (const auto &[name, instrument] : portfolio) sum += instrument->price(market);
  return sum;
}

int main() {
  const Market market{100, 0.2, 0.05};
  Market slope{};
  __enzyme_autodiff<void>((void *)value, enzyme_dup, &market, &slope);

  double delta = 0, vega = 0, rho = 0;
  for (auto [count, call] : {std::pair{10.0, Call(120, 2)}, std::pair{-4.0, Call(100, 0.5)}}) {
    const double d = call.d1(market), root = std::sqrt(call.maturity);
    delta += count * normal(d);
    vega += count * market.spot * root * std::exp(-d * d / 2) / std::sqrt(2 * M_PI);
    rho += count * call.strike * call.maturity * std::exp(-market.rate * call.maturity) *
           normal(d - market.volatility * root);
  }
  rho -= 500 * 3 * std::exp(-3 * market.rate);
  for (int year = 1; year <= 3; year++) rho -= 0.03 * 500 * year * std::exp(-market.rate * year);
  expect("delta", slope.spot, delta, 1e-12);
  expect("vega", slope.volatility, vega, 1e-12);
  expect("rho", slope.rate, rho, 1e-12);
  std::printf("value %.4f delta %.4f vega %.4f rho %.4f\n", value(market), slope.spot, slope.volatility, slope.rate);
  return wrong();
}
