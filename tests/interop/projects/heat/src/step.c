#include "grid.h"
#include <math.h>
void step(grid *g, double rate) {
  size_t n = g->columns;
  for (size_t i = 1; i + 1 < g->rows; i++)
    for (size_t j = 1; j + 1 < n; j++) {
      const double *p = g->now + i * n + j;
      g->next[i * n + j] = *p + rate * (p[1] + p[-1] + p[n] + p[-(ptrdiff_t)n] - 4 * *p);
    }
  double *kept = g->now;
  g->now = g->next;
  g->next = kept;
}
double energy(const grid *g) {
  double sum = 0;
  for (size_t i = 0; i < g->rows * g->columns; i++) sum += g->now[i] * g->now[i] + 0.1 * hypot(g->now[i], 1);
  return sum;
}
