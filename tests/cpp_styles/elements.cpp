// A mesh: elements with std::array of places and of loads, added into the numbers of the nodes.
#include <array>
#include <cmath>
#include <vector>
struct Element {
  std::array<int, 3> nodes;
  std::array<double, 3> load;
  int kind;
  double area;
};
struct Mesh {
  std::vector<Element> elements;
  std::vector<double> u;
};
static void assemble(Mesh &m, const double *x, int n) {
  for (auto &e : m.elements)
    for (int a = 0; a < 3; a++) {
      double grad = x[e.nodes[a]] - x[e.nodes[(a + 1) % 3]];
      e.load[a] += e.area * grad;
      m.u[e.nodes[a]] += std::tanh(e.load[a]) * (e.kind ? 2.0 : 0.5);
    }
}
extern "C" double loss(const double *x, long n) {
  Mesh m;
  m.u.assign(n, 0.0);
  for (int i = 0; i + 2 < n; i++) m.elements.push_back({{i, i + 1, i + 2}, {0, 0, 0}, i % 2, 0.5 * x[i] * x[i + 1]});
  assemble(m, x, n);
  assemble(m, x, n);
  double s = 0;
  for (double v : m.u) s += v * v;
  return s;
}
