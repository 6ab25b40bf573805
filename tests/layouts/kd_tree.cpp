// A k-d tree whose nodes hold indices beside a point, read by an axis that the program computes; boxes moved about.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>
using point = std::array<double, 2>;
struct node { int l, r, axis; point p; };
struct tree {
  std::vector<node> nodes;
  int build(std::vector<point> &pts, int lo, int hi, int depth) {
    if (lo >= hi) return -1;
    int axis = depth % 2, mid = (lo + hi) / 2;
    std::nth_element(pts.begin() + lo, pts.begin() + mid, pts.begin() + hi, [axis](const point &a, const point &b) { return a[axis] < b[axis]; });
    int me = (int)nodes.size();
    nodes.push_back({-1, -1, axis, pts[mid]});
    int l = build(pts, lo, mid, depth + 1), r = build(pts, mid + 1, hi, depth + 1);
    nodes[me].l = l;
    nodes[me].r = r;
    return me;
  }
  void nearest(int at, const point &q, double &best) const {
    if (at < 0) return;
    const node &n = nodes[at];
    double dx = q[0] - n.p[0], dy = q[1] - n.p[1], d = dx * dx + dy * dy, side = q[n.axis] - n.p[n.axis];
    if (d < best) best = d;
    nearest(side < 0 ? n.l : n.r, q, best);
    if (side * side < best) nearest(side < 0 ? n.r : n.l, q, best);
  }
};
struct box { int first, last; point lo, hi; int axis; };
extern "C" double loss(const double *x, long n) {
  std::vector<point> pts(n);
  for (long i = 0; i < n; i++) pts[i] = {x[i], x[(2 * i + 1) % n] * x[i]};
  tree t;
  int root = t.build(pts, 0, (int)n, 0);
  double s = 0;
  for (int k = 0; k < 5; k++) {
    point q = {0.3 * k - 0.5 + 0.1 * x[0], 0.2 * k - 0.4 * x[1]};
    double best = 1e30;
    t.nearest(root, q, best);
    s += std::sqrt(best + 0.1);
  }
  std::vector<box> boxes;
  for (int i = 0; i < (int)n; i++) {
    box b{i, (int)n - 1 - i, {x[i], x[i] * i}, {x[i] * x[i], 1 + x[0]}, i & 1};
    if (i == 3) std::swap(b.lo, b.hi);
    boxes.push_back(b);
  }
  for (auto &b : boxes) s += boxes[b.first].lo[b.axis] * boxes[b.last].hi[1 - b.axis];
  std::swap(boxes[0], boxes[3]);
  return s + boxes[0].lo[1] * boxes[3].hi[boxes[1].axis];
}
