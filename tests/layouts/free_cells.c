#include <math.h>
#include <stdlib.h>
#include <string.h>
/* cells in a pool: free ones are linked through the word that holds the number */
typedef union cell { double v; union cell *next; long count; } cell;
typedef struct { cell *cells; cell *free; int n; } pool;
static void pool_init(pool *p, int n) { p->cells = malloc(n * sizeof(cell)); p->n = n; p->free = NULL; for (int i = n - 1; i >= 0; i--) { p->cells[i].next = p->free; p->free = &p->cells[i]; } }
static cell *take(pool *p) { cell *c = p->free; p->free = c->next; return c; }
static void give(pool *p, cell *c) { c->next = p->free; p->free = c; }
double loss(const double *x, long n) {
  pool p; pool_init(&p, 4); double s = 0; cell *live[3] = {0};
  for (int i = 0; i < 10; i++) {
    cell *c = take(&p); c->v = sin(x[i % n]) * (i + 1);
    int k = i % 3; if (live[k]) { s += live[k]->v * live[k]->v * x[k]; give(&p, live[k]); }
    live[k] = c;
  }
  for (int k = 0; k < 3; k++) s += live[k]->v * x[k + 3];
  free(p.cells); return s;
}
