/* A flexible array member behind ints, copied whole. */
#include <stdlib.h>
#include <string.h>
typedef struct { int count; short kind; double scale; double data[]; } series;
static series *make(int n) { series *s = malloc(sizeof *s + n * sizeof(double)); s->count = n; s->kind = 3; s->scale = 1; return s; }
static series *copy(const series *s) { size_t bytes = sizeof *s + s->count * sizeof(double); series *c = malloc(bytes); memcpy(c, s, bytes); return c; }
double loss(const double *x, long n) {
  series *a = make((int)n);
  for (int i = 0; i < a->count; i++) a->data[i] = x[i] * x[(i + 1) % n];
  a->scale = x[0];
  series *b = copy(a);
  b->scale *= 2;
  double s = 0;
  for (int i = 0; i < b->count; i++) s += b->scale * b->data[i] * a->data[b->count - 1 - i] * b->kind;
  free(a); free(b);
  return s;
}
