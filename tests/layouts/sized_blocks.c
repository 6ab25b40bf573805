/* malloc wrapped: the size stands before the block; matrices with reference counts. */
#include <stdlib.h>
#include <string.h>
static long in_use;
static void *get(size_t n) { size_t *p = malloc(n + 16); *p = n; in_use += (long)n; return (char *)p + 16; }
static void put(void *q) { size_t *p = (size_t *)((char *)q - 16); in_use -= (long)*p; free(p); }
typedef struct { int rows, columns, references; double *data; } matrix;
static matrix *make(int r, int c) { matrix *m = get(sizeof *m); m->rows = r; m->columns = c; m->references = 1; m->data = get(sizeof(double) * r * c); return m; }
static void drop(matrix *m) { if (--m->references == 0) { put(m->data); put(m); } }
static matrix *product(const matrix *a, const matrix *b) {
  matrix *c = make(a->rows, b->columns);
  for (int i = 0; i < c->rows; i++) for (int j = 0; j < c->columns; j++) { double s = 0; for (int k = 0; k < a->columns; k++) s += a->data[i * a->columns + k] * b->data[k * b->columns + j]; c->data[i * c->columns + j] = s; }
  return c;
}
double loss(const double *x, long n) {
  matrix *a = make(2, (int)n), *b = make((int)n, 2);
  memcpy(a->data, x, n * sizeof *x);
  for (int i = 0; i < n; i++) { a->data[n + i] = x[i] * i; b->data[2 * i] = x[i]; b->data[2 * i + 1] = 1; }
  matrix *c = product(a, b), *d = c;
  d->references++;
  double s = d->data[0] * d->data[3] + c->data[1] * c->data[2] * c->references;
  drop(a); drop(b); drop(c); drop(d);
  return s + 0 * in_use;
}
