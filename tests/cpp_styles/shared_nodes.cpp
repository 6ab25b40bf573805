// Nodes that a list and a map own together.
#include <cmath>
#include <list>
#include <map>
#include <memory>
struct Node {
  double value;
  int id;
};
extern "C" double loss(const double *x, long n) {
  std::list<std::shared_ptr<Node>> nodes;
  std::map<int, std::shared_ptr<Node>> byid;
  for (int i = 0; i < n; i++) {
    auto p = std::make_shared<Node>(Node{x[i], i});
    nodes.push_back(p);
    byid[(i * 5) % n] = p;
  }
  for (auto &[id, p] : byid) p->value += 0.1 * id * p->value * p->value;
  double s = 0;
  for (auto &p : nodes) s += std::sin(p->value) * byid[p->id]->value;
  return s;
}
