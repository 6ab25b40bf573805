// A queue of events: customers arrive at a small network of servers; times come from a generator of our own.
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

class Generator {
  uint64_t state_;

public:
  explicit Generator(uint64_t seed) : state_(seed * 2862933555777941757ULL + 3037000493ULL) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  double uniform() { return (double)(next() >> 11) * (1.0 / 9007199254740992.0); }
  double exponential(double rate) { return -std::log(1.0 - uniform()) / rate; }
};

enum class Kind { Arrival, Departure, Inspection };

struct Event {
  double time;
  Kind kind;
  int server;
  int customer;
};
struct Later {
  bool operator()(const Event &a, const Event &b) const { return a.time > b.time; }
};

struct Customer {
  double arrived = 0, served = 0, left = 0;
  int hops = 0;
};

class Server {
  std::deque<int> waiting_;
  bool busy_ = false;
  double rate_, busy_time_ = 0;

public:
  explicit Server(double rate) : rate_(rate) {}
  bool busy() const { return busy_; }
  std::size_t length() const { return waiting_.size(); }
  void enqueue(int c) { waiting_.push_back(c); }
  bool idle_with_work() const { return !busy_ && !waiting_.empty(); }
  int start() {
    int c = waiting_.front();
    waiting_.pop_front();
    busy_ = true;
    return c;
  }
  double service(Generator &g) {
    double t = g.exponential(rate_);
    busy_time_ += t;
    return t;
  }
  void finish() { busy_ = false; }
  double busy_time() const { return busy_time_; }
};

class Simulation {
  std::priority_queue<Event, std::vector<Event>, Later> agenda_;
  std::vector<Server> servers_;
  std::vector<Customer> customers_;
  Generator random_{42};
  double now_ = 0, area_ = 0, last_ = 0, arrival_rate_;
  int limit_;
  std::vector<std::function<void(const Event &)>> listeners_;

  void advance(double t) {
    std::size_t inside = 0;
    for (const auto &s : servers_) inside += s.length() + (s.busy() ? 1 : 0);
    area_ += inside * (t - last_);
    last_ = t;
    now_ = t;
  }
  void try_start(int s) {
    Server &server = servers_[s];
    if (!server.idle_with_work()) return;
    int c = server.start();
    customers_[c].served = now_;
    agenda_.push(Event{now_ + server.service(random_), Kind::Departure, s, c});
  }
  void handle(const Event &e) {
    switch (e.kind) {
    case Kind::Arrival: {
      int id = (int)customers_.size();
      Customer c;
      c.arrived = now_;
      customers_.push_back(c);
      servers_[0].enqueue(id);
      if (id + 1 < limit_) agenda_.push({now_ + random_.exponential(arrival_rate_), Kind::Arrival, 0, -1});
      try_start(0);
      break;
    }
    case Kind::Departure: {
      servers_[e.server].finish();
      Customer &c = customers_[e.customer];
      c.hops++;
      int to = e.server + 1;
      if (to < (int)servers_.size() && random_.uniform() < 0.8) {
        servers_[to].enqueue(e.customer);
        try_start(to);
      } else {
        c.left = now_;
      }
      try_start(e.server);
      break;
    }
    case Kind::Inspection:
      agenda_.push({now_ + 2.0, Kind::Inspection, -1, -1});
      break;
    }
    for (auto &l : listeners_) l(e);
  }

public:
  Simulation(const double *rates, long n, double arrival, int limit) : arrival_rate_(arrival), limit_(limit) {
    for (long i = 0; i < n; i++) servers_.emplace_back(rates[i]);
    agenda_.push({0.0, Kind::Arrival, 0, -1});
    agenda_.push({1.0, Kind::Inspection, -1, -1});
  }
  void listen(std::function<void(const Event &)> f) { listeners_.push_back(std::move(f)); }
  void run(double horizon, int most) {
    for (int k = 0; k < most && !agenda_.empty(); k++) {
      Event e = agenda_.top();
      agenda_.pop();
      if (e.time > horizon) break;
      advance(e.time);
      handle(e);
    }
  }
  double mean_stay() const {
    double s = 0;
    int k = 0;
    for (const auto &c : customers_)
      if (c.left > 0) s += c.left - c.arrived, k++;
    return k ? s / k : 0;
  }
  double mean_wait() const {
    double s = 0;
    for (const auto &c : customers_) s += c.served - c.arrived;
    return s / customers_.size();
  }
  double area() const { return area_; }
  double utilisation() const {
    double s = 0;
    for (const auto &v : servers_) s += v.busy_time() / now_;
    return s;
  }
};

extern "C" double loss(const double *x, long n) {
  std::vector<double> rates;
  for (long i = 1; i < n; i++) rates.push_back(1.0 + x[i] * x[i]);
  Simulation sim(rates.data(), (long)rates.size(), 0.5 + x[0], 25);
  double weighted = 0;
  int inspections = 0;
  sim.listen([&](const Event &e) { if (e.kind == Kind::Inspection) inspections++; });
  sim.listen([&weighted](const Event &e) { if (e.kind == Kind::Departure) weighted += e.time * e.time / (1 + e.server); });
  sim.run(60.0, 200);
  return sim.mean_stay() + 0.5 * sim.mean_wait() + 0.1 * sim.area() + sim.utilisation() + 1e-4 * weighted + 0.01 * inspections;
}
