/* qsort of structs with a comparison of our own. */
#include <stdlib.h>
typedef struct {
  double key;
  int id;
  double w;
} item;
static int cmp(const void *a, const void *b) {
  double u = ((const item *)a)->key, v = ((const item *)b)->key;
  return (u > v) - (u < v);
}
double loss(const double *x, long n) {
  item *t = malloc(n * sizeof *t);
  for (long i = 0; i < n; i++) {
    t[i].key = x[i];
    t[i].id = (int)i;
    t[i].w = x[i] * x[0];
  }
  qsort(t, n, sizeof *t, cmp);
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.5 * s + t[i].w * (t[i].id + 1) + t[i].key;
  free(t);
  return s;
}
