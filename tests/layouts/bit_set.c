/* A bit set in the middle of a struct, of what a variable names; weights before it, the array and counters behind. */
#include <stdlib.h>

typedef struct {
  double weight[2];
  unsigned char live[4];
  const double *x;
  int n;
  double cost;
} sim;

static int follower(const sim *s, int id) { return (id * 7 + 3) % s->n; }

static int is_live(const sim *s, int id) { return s->live[id / 8] >> (id % 8) & 1; }

double loss(const double *x, long n) {
  sim *s = calloc(1, sizeof *s);
  s->weight[0] = 1.5;
  s->weight[1] = 0.5;
  s->x = x;
  s->n = (int)n;
  int id = s->n - 1;
  for (long t = 0; t < 12; t++) {
    int k = is_live(s, id);
    s->live[id / 8] |= 1 << (id % 8);
    s->cost += s->weight[k] * s->x[id] * s->x[id];
    s->weight[k] += 0.1 * s->x[id];
    id = (follower(s, id) + (int)t) % s->n;
  }
  double cost = s->cost + s->weight[0] * s->weight[1];
  free(s);
  return cost;
}
