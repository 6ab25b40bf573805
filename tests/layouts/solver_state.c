/* The state of a solver in one struct: tables in the middle, indexed by a variable, and counters behind them. */
#include <stdlib.h>
typedef struct { double step, order[14]; double table[13][14]; int stage, largest; } solver;
double loss(const double *x, long n) {
  solver *s = calloc(1, sizeof *s);
  s->step = x[0]; s->stage = 3;
  for (int i = 0; i < n && i < 14; i++) s->order[i] = x[i] * s->step;
  for (int i = 0; i < n; i++) s->table[i % 13][(i * 5) % 14] = s->order[i] * x[(i + 1) % n];
  double most = 0;
  s->largest = 1;
  for (int i = 1; i < n && i < 14; i++)
    if (s->order[i] > most) { most = s->order[i]; s->largest = i; }
  double sum = s->order[s->largest] * s->step + s->stage;
  for (int i = 0; i < 13; i++) for (int j = 0; j < 14; j++) sum += s->table[i][j];
  free(s);
  return sum;
}
