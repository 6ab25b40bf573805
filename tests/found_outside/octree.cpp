// Barnes-Hut quadtree with unique_ptr children
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>
struct Body { std::array<double, 3> r, v; double m; };
class Octree { struct Node { std::array<double, 3> c; double half; double m = 0; std::array<double, 3> com{};
  std::array<std::unique_ptr<Node>, 8> kid; const Body *leaf = nullptr; bool inner = false; };
  std::unique_ptr<Node> root; double theta, eps;
  static int octant(const Node &n, const std::array<double, 3> &r) {
    return (r[0] > n.c[0]) | (r[1] > n.c[1]) << 1 | (r[2] > n.c[2]) << 2; }
  void insert(Node &n, const Body *b, int depth = 0) { if (!n.inner && !n.leaf) { n.leaf = b; return;
    } if (depth > 30) return; if (!n.inner) { n.inner = true; const Body *old = std::exchange(n.leaf, nullptr);
    push(n, old, depth); } push(n, b, depth); }
  void push(Node &n, const Body *b, int depth) { int o = octant(n, b->r);
    if (!n.kid[o]) { n.kid[o] = std::make_unique<Node>(); for (int k = 0; k < 3;
    k++) n.kid[o]->c[k] = n.c[k] + (o >> k & 1 ? 0.5 : -0.5) * n.half; n.kid[o]->half = 0.5 * n.half;
    } insert(*n.kid[o], b, depth + 1); }
  void summarise(Node &n) { if (n.leaf) { n.m = n.leaf->m; n.com = n.leaf->r; return;
    } for (auto &k : n.kid) if (k) { summarise(*k); n.m += k->m; for (int d = 0; d < 3;
    d++) n.com[d] += k->m * k->com[d]; } if (n.m > 0) for (double &c : n.com) c /= n.m; }
  void pull(const Node &n, const Body &b, std::array<double, 3> &a) const { if (n.leaf == &b) return;
    double d[3], r2 = eps * eps; for (int k = 0; k < 3; k++) { d[k] = n.com[k] - b.r[k]; r2 += d[k] * d[k];
    } if (!n.inner || 4 * n.half * n.half < theta * theta * r2) { double f = n.m / (r2 * std::sqrt(r2));
    for (int k = 0; k < 3; k++) a[k] += f * d[k]; return; } for (auto &k : n.kid) if (k) pull(*k, b, a); }
public: Octree(const std::vector<Body> &bs, double t, double e) : root(std::make_unique<Node>()), theta(t),
  eps(e) { root->c = {0, 0, 0}; root->half = 8; for (auto &b : bs) insert(*root, &b); summarise(*root); }
  std::array<double, 3> accel(const Body &b) const { std::array<double, 3> a{}; pull(*root, b, a); return a; } };
extern "C" double loss(const double *x, long n) { std::vector<Body> bs; for (int i = 0; i < 14;
  i++) bs.push_back({{std::sin(1.7 * i) * 3 + 0.1 * x[i % n], std::cos(2.3 * i) * 2,
  std::sin(0.9 * i + 1) * 2.5 + 0.05 * x[(i + 2) % n]}, {0.1 * x[(i + 1) % n], 0, 0.1}, 1 + 0.1 * x[(i + 3) % n]});
  for (int s = 0; s < 4; s++) { Octree t(bs, 0.5, 0.1); std::vector<std::array<double, 3>> acc;
    acc.reserve(bs.size()); for (auto &b : bs) acc.push_back(t.accel(b)); for (std::size_t i = 0; i < bs.size();
    i++) for (int k = 0; k < 3; k++) { bs[i].v[k] += 0.05 * acc[i][k]; bs[i].r[k] += 0.05 * bs[i].v[k]; } }
  double e = 0; for (auto &b : bs) for (int k = 0; k < 3;
    k++) e += 0.5 * b.m * b.v[k] * b.v[k] + 0.01 * b.r[k] * b.r[k]; return e; }
