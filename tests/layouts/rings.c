/* Two rings and counters in one block, with records between: everything by indices that are kept in memory. */
#include <stdlib.h>

typedef struct {
  double values[8];
  int head, tail;
} ring;

typedef struct {
  ring in;
  int count[4];
  ring out;
  const double *x;
  struct {
    int kind;
    double value[3];
    int last;
  } record[4];
  double sum;
  int n;
} pipe_line;

static void push(ring *r, double v) {
  r->values[r->tail] = v;
  r->tail = (r->tail + 1) % 8;
}

static double pop(ring *r) {
  double v = r->values[r->head];
  r->head = (r->head + 1) % 8;
  return v;
}

double loss(const double *x, long n) {
  pipe_line *p = calloc(1, sizeof *p);
  p->x = x;
  p->n = (int)n;
  for (int t = 0; t < 18; t++) {
    int i = (t * 5 + p->count[t % 4]) % p->n;
    push(&p->in, p->x[i] * p->x[i]);
    p->count[i % 4]++;
    if (t >= 3) {
      double v = pop(&p->in);
      int k = p->count[1] % 4;
      p->record[k].kind = t;
      p->record[k].value[p->record[k].last] = v + p->x[i];
      p->record[k].last = (p->record[k].last + 1) % 3;
      push(&p->out, v * p->record[k].value[0]);
    }
    if (t >= 6) p->sum += pop(&p->out) * p->record[p->count[2] % 4].value[1];
  }
  double sum = p->sum;
  free(p);
  return sum;
}
