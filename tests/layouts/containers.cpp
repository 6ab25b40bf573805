// Maps, lists, deques and containers of containers.
#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>
struct trade { int book; double price; int lots; };
extern "C" double loss(const double *x, long n) {
  std::vector<trade> trades;
  for (long i = 0; i < n; i++) trades.push_back({int(i % 2), x[i] * (i + 1), int(i) + 1});
  std::map<int, std::vector<double>> books;
  std::unordered_map<int, double> by_lots;
  for (auto &t : trades) { books[t.book].push_back(t.price * t.lots); by_lots[t.lots % 3] += t.price; }
  std::deque<double> window; std::list<double> history; double s = 0;
  for (auto &[book, values] : books) for (double v : values) { window.push_back(v); if (window.size() > 2) window.pop_front(); double m = 0; for (double w : window) m += w; history.push_front(m * v); }
  history.sort();
  double w = 1;
  for (double h : history) { s += w * h; w *= 0.9; }
  for (auto &[lots, v] : by_lots) s += v * v * (lots + 1);
  return s;
}
