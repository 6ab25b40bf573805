// Maps, sets and lists as members of classes, with numbers behind them: the end of a tree is a part of the class, and
// what follows a node's links is none of its members. Elements are erased, trees copied, shortest ways found.
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>
struct Asset { std::string name; double price; std::map<std::string,double> greeks; std::vector<double> path; size_t steps; double vol; };
struct Book { std::map<std::string, Asset> assets; std::unordered_map<int,double> rates; size_t trades; double total; };
extern "C" double of_book(const double *x, long n) {
  Book b; b.trades = 0; b.total = 0;
  for (long i = 0; i < n; i++) {
    Asset a; a.name = "a" + std::to_string(i); a.price = x[i]; a.vol = 0.1 * x[i] * x[i]; a.steps = i + 2;
    for (size_t k = 0; k < a.steps; k++) a.path.push_back(a.price * std::exp(a.vol * k));
    a.greeks["delta"] = a.path.back(); a.greeks["vega"] = a.vol * a.path[1];
    b.rates[i] = x[i] * 0.5; b.assets[a.name] = a; b.trades++;
  }
  for (auto &[k, a] : b.assets) { b.total += a.greeks.at("delta") * b.rates[a.steps - 2] + a.greeks["vega"]; }
  return b.total * b.trades;
}
class Graph { public: std::map<int, std::vector<std::pair<int,double>>> edges; std::set<int> seen; std::vector<double> dist; int n; double scale;
  explicit Graph(int n) : dist(n, 1e9), n(n), scale(1) {}
  void add(int a, int b, double w) { edges[a].push_back({b, w}); edges[b].push_back({a, w}); }
  double shortest(int s, int t) {
    std::set<std::pair<double,int>> q; dist[s] = 0; q.insert({0.0, s});
    while (!q.empty()) { auto [d, u] = *q.begin(); q.erase(q.begin()); if (seen.count(u)) continue; seen.insert(u);
      for (auto &[v, w] : edges[u]) if (d + w < dist[v]) { dist[v] = d + w; q.insert({dist[v], v}); } }
    return dist[t] * scale; } };
extern "C" double of_graph(const double *x, long n) {
  Graph g(n + 1);
  for (int i = 0; i < n; i++) { g.add(i, i + 1, x[i] * x[i] + 0.1); if (i + 2 <= n) g.add(i, i + 2, 1.5 * x[i] + 0.2); }
  g.scale = x[0];
  return g.shortest(0, n);
}
struct Queue { std::set<std::pair<double,int>> q; int a; double scale; };
extern "C" double of_queue(const double *x, long n) {
  Queue g; g.scale = x[0];
  for (int i = 0; i < n; i++) g.q.insert({x[i] * x[i], i});
  double s = 0; int k = 1;
  while (!g.q.empty()) { auto [d, u] = *g.q.begin(); g.q.erase(g.q.begin()); s += d * k++ * (u + 1); }
  return s * g.scale;
}
struct Moments { std::map<int,double> a; double b; std::map<long,double> c; int e; double w[3]; };
extern "C" double of_moments(const double *x, long n) {
  Moments m; m.b = x[0]; m.e = 2; m.w[0] = m.w[1] = m.w[2] = x[1];
  for (int i = 0; i < n; i++) { m.a[i % 3] += x[i]; m.c[i] = x[i] * x[i]; m.w[i % 3] += x[i] * m.b; }
  m.a.erase(1); m.c.erase(2);
  double s = 0;
  for (auto &[k, v] : m.a) s += v * v * (k + 1);
  for (auto &[k, v] : m.c) s += v * m.b * (k + 1);
  return s * m.e + m.w[0] * m.w[1] * m.w[2];
}
