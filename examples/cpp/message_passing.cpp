// A small graph network: three rounds of messages along edges, trained to tell the size of each node's component.
#include "check.h"
#include <cmath>
#include <memory>
#include <vector>

extern int enzyme_const, enzyme_dup, enzyme_out;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);

constexpr int width = 4, rounds = 3;
struct Weights {
  double self[width][width], neighbour[width][width], bias[width], readout[width];
};
struct Node {
  std::vector<int> neighbours;
  double label = 0;
};
using Graph = std::vector<Node>;

static double loss(const Graph &graph, const Weights &w) {
  std::vector<std::vector<double>> state(graph.size(), std::vector<double>(width, 0.5));
  for (int round = 0; round < rounds; round++) {
    std::vector<std::vector<double>> next(graph.size());
    for (std::size_t v = 0; v < graph.size(); v++) {
      std::vector<double> message(width, 0.0);
      for (int u : graph[v].neighbours)
        for (int i = 0; i < width; i++) message[i] += state[u][i];
      next[v].reserve(width);
      for (int i = 0; i < width; i++) {
        double sum = w.bias[i];
        for (int j = 0; j < width; j++) sum += w.self[i][j] * state[v][j] + w.neighbour[i][j] * message[j];
        next[v].push_back(std::tanh(sum));
      }
    }
    state = std::move(next);
  }
  double total = 0;
  for (std::size_t v = 0; v < graph.size(); v++) {
    double out = 0;
    for (int i = 0; i < width; i++) out += w.readout[i] * state[v][i];
    total += (out - graph[v].label) * (out - graph[v].label);
  }
  return total / graph.size();
}

static Graph paths_and_stars() {
  Graph graph(15);
  auto join = [&](int a, int b) {
    graph[a].neighbours.push_back(b);
    graph[b].neighbours.push_back(a);
  };
  for (int i = 0; i < 4; i++) join(i, i + 1);       // a path of five
  for (int i = 6; i < 9; i++) join(5, i);           // a star of four
  for (int i = 9; i < 14; i++) join(i, i + 1);      // a path of six
  for (int i = 0; i < 15; i++) graph[i].label = i < 5 ? 0.5 : i < 9 ? 0.4 : 0.6;
  return graph;
}

int main() {
  const Graph graph = paths_and_stars();
  Weights w;
  double *flat = &w.self[0][0];
  constexpr int count = sizeof(Weights) / sizeof(double);
  for (int i = 0; i < count; i++) flat[i] = 0.3 * std::sin(1.7 * i + 1);

  double first = 0, last = 0;
  for (int epoch = 0; epoch < 300; epoch++) {
    Weights d{};
    __enzyme_autodiff<void>((void *)loss, enzyme_const, &graph, enzyme_dup, &w, &d);
    const double *slope = &d.self[0][0];
    if (epoch == 0) {
      first = loss(graph, w);
      for (int i = 0; i < count; i += 7) {
        const double h = 1e-5, kept = flat[i];
        flat[i] = kept + h;
        const double up = loss(graph, w);
        flat[i] = kept - h;
        const double down = loss(graph, w);
        flat[i] = kept;
        expect("weight", slope[i], (up - down) / (2 * h), 1e-8);
      }
    }
    for (int i = 0; i < count; i++) flat[i] -= 0.1 * slope[i];
    last = loss(graph, w);
  }
  std::printf("loss fell by more than 20: %s\n", last < first / 20 ? "yes" : "no");
  return wrong();
}
