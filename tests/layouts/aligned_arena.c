/* An arena that aligns what it hands out, and counts the bytes that it has taken by the distance of two addresses. */
#include <stdint.h>
#include <stdlib.h>
typedef struct block { struct block *prev; size_t used, size; _Alignas(16) unsigned char data[]; } block;
typedef struct { block *cur; } arena;
static void *arena_alloc(arena *a, size_t n, size_t align) {
  if (a->cur) { uintptr_t p = (uintptr_t)a->cur->data + a->cur->used; uintptr_t q = (p + align - 1) & ~(uintptr_t)(align - 1); size_t need = (q - p) + n; if (a->cur->used + need <= a->cur->size) { a->cur->used += need; return (void *)q; } }
  block *b = malloc(sizeof *b + 256 + n); b->prev = a->cur; b->size = 256 + n; b->used = n; a->cur = b; return b->data;
}
double loss(const double *x, long n) {
  arena a = {0}; double s = 0;
  for (int i = 0; i < 20; i++) { double *t = arena_alloc(&a, 4 * sizeof(double), 32); for (int k = 0; k < 4; k++) t[k] = x[(k + i) % n] * s + x[k]; s += 0.01 * t[0] * t[3] - t[1] * 0.1; }
  while (a.cur) { block *p = a.cur->prev; free(a.cur); a.cur = p; }
  return s;
}
