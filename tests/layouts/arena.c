/* A bump allocator over one block hands out doubles, ints and structs. */
#include <stddef.h>
#include <stdlib.h>
typedef struct { char *base; size_t used, room; } arena;
typedef struct node { struct node *next; int kind; double value; } node;
static void *take(arena *a, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (a->used + bytes > a->room) abort();
  void *p = a->base + a->used;
  a->used += bytes;
  return p;
}
double loss(const double *x, long n) {
  arena a = {malloc(1 << 16), 0, 1 << 16};
  node *head = 0;
  int *counts = take(&a, 4 * sizeof(int));
  for (int k = 0; k < 4; k++) counts[k] = 0;
  for (long i = 0; i < n; i++) {
    node *e = take(&a, sizeof *e);
    e->next = head; e->kind = (int)(i % 3); e->value = x[i] * x[i];
    counts[e->kind]++;
    head = e;
  }
  double *sums = take(&a, 3 * sizeof(double));
  for (int k = 0; k < 3; k++) sums[k] = 0;
  for (node *e = head; e; e = e->next) sums[e->kind] += e->value / counts[e->kind];
  double s = 0;
  for (int k = 0; k < 3; k++) s += (k + 1) * sums[k] * sums[k];
  free(a.base);
  return s;
}
