// How much each street matters: the derivative of the shortest way through a city by the length of its streets.
#include "check.h"
#include <functional>
#include <queue>
#include <utility>
#include <vector>

extern int enzyme_const, enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

struct Street {
  int from, to;
};
struct City {
  int crossings = 0;
  std::vector<Street> streets;
  std::vector<std::vector<int>> out;  // streets that leave a crossing

  explicit City(int side) : crossings(side * side), out(side * side) {
    for (int row = 0; row < side; row++)
      for (int column = 0; column < side; column++) {
        const int here = row * side + column;
        if (column + 1 < side) add(here, here + 1);
        if (row + 1 < side) add(here, here + side);
        if (row > 0 && column % 3 == 1) add(here, here - side);
      }
  }
  void add(int from, int to) {
    out[from].push_back(static_cast<int>(streets.size()));
    streets.push_back({from, to});
  }
};

// Dijkstra's algorithm; a street takes length + congestion * length^2.
static double shortest(const City &city, const double *length, double congestion) {
  using Entry = std::pair<double, int>;
  std::vector<double> distance(city.crossings, 1e300);
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> open;
  distance[0] = 0;
  open.push({0.0, 0});
  while (!open.empty()) {
    const auto [so_far, here] = open.top();
    open.pop();
    if (so_far > distance[here]) continue;
    for (int number : city.out[here]) {
      const int there = city.streets[number].to;
      const double next = so_far + length[number] + congestion * length[number] * length[number];
      if (next < distance[there]) {
        distance[there] = next;
        open.push({next, there});
      }
    }
  }
  return distance[city.crossings - 1];
}

int main() {
  const City city(7);
  const int count = static_cast<int>(city.streets.size());
  std::vector<double> length(count), gradient(count);
  unsigned seed = 12345;
  for (double &l : length) {
    seed = seed * 1664525u + 1013904223u;
    l = 1 + (seed >> 16) % 1000 / 500.0;
  }
  const double congestion = 0.1;
  double d_congestion = __enzyme_autodiff<double>((void *)shortest, enzyme_const, &city, enzyme_dup, length.data(),
                                                  gradient.data(), congestion);
  int used = 0;
  double squares = 0;
  for (int i = 0; i < count; i++) {
    if (gradient[i] == 0) continue;
    used++;
    squares += length[i] * length[i];
    expect("street on the way", gradient[i], 1 + 2 * congestion * length[i], 1e-14);
  }
  expect("congestion", d_congestion, squares, 1e-14);
  const double h = 1e-6;
  expect("congestion by differences", d_congestion,
         (shortest(city, length.data(), congestion + h) - shortest(city, length.data(), congestion - h)) / (2 * h), 1e-7);
  std::printf("%d of %d streets are on the way\n", used, count);
  return wrong();
}
