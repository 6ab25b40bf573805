// Cells in a growing vector: places of other cells beside numbers, both by a variable index.
#include <cmath>
#include <vector>
struct Cell {
  int next[4];
  double w[4];
  double total;
};
extern "C" double loss(const double *x, long n) {
  std::vector<Cell> cells;
  for (int i = 0; i < n; i++) {
    Cell c{};
    for (int k = 0; k < 4; k++) {
      c.next[k] = (i + k + 1) % n;
      c.w[k] = x[i] * (k + 1);
    }
    cells.push_back(c);
  }
  for (int sweep = 0; sweep < 2; sweep++)
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 4; k++) {
        int j = cells[i].next[k];
        cells[j].w[(k + i) % 4] += 0.1 * std::sin(cells[i].w[k]);
      }
  double s = 0;
  for (auto &c : cells) {
    for (int k = 0; k < 4; k++) c.total += c.w[k] * c.w[k];
    s += c.total * c.next[0];
  }
  return s;
}
