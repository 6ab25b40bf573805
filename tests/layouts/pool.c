/* A pool of equal blocks with a free list inside of the free blocks. */
#include <stdlib.h>
typedef struct block { union { struct block *next; double data[4]; } u; } block;
typedef struct { block *all, *free_; int used; } pool;
static double *get(pool *p) { block *b = p->free_; p->free_ = b->u.next; p->used++; return b->u.data; }
static void give(pool *p, double *d) { block *b = (block *)d; b->u.next = p->free_; p->free_ = b; p->used--; }
double loss(const double *x, long n) {
  pool p = {malloc(8 * sizeof(block)), 0, 0};
  for (int i = 0; i < 8; i++) { p.all[i].u.next = p.free_; p.free_ = &p.all[i]; }
  double s = 0;
  for (long i = 0; i + 1 < n; i++) {
    double *a = get(&p), *b = get(&p);
    for (int k = 0; k < 4; k++) { a[k] = x[i] * (k + 1); b[k] = x[i + 1] * a[k]; }
    for (int k = 0; k < 4; k++) s += a[k] * b[3 - k];
    give(&p, a); give(&p, b);
  }
  s += p.used;
  free(p.all);
  return s;
}
