/* Two halves of one allocation change places after each step. */
#include <stdlib.h>
typedef struct {
  double *cur, *next;
  int n;
  double dt;
} st;
static void step(st *s) {
  for (int i = 0; i < s->n; i++) {
    int l = (i + s->n - 1) % s->n, r = (i + 1) % s->n;
    s->next[i] = s->cur[i] + s->dt * (s->cur[l] - 2 * s->cur[i] + s->cur[r] * s->cur[i]);
  }
  double *t = s->cur;
  s->cur = s->next;
  s->next = t;
}
double loss(const double *x, long n) {
  double *mem = malloc(2 * n * 8);
  st s = {mem, mem + n, (int)n, 0.1};
  for (long i = 0; i < n; i++) s.cur[i] = x[i];
  for (int t = 0; t < 7; t++) step(&s);
  double z = 0;
  for (long i = 0; i < n; i++) z += s.cur[i] * s.cur[i] * (i + 1);
  free(mem);
  return z;
}
