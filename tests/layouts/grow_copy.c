/* A vector for elements of any size, grown by memcpy. */
#include <stdlib.h>
#include <string.h>
typedef struct {
  size_t n, cap, size;
  void *data;
} vec;
static void *push(vec *v, const void *e) {
  if (v->n == v->cap) {
    size_t c = v->cap ? v->cap * 2 : 2;
    void *d = malloc(c * v->size);
    if (v->n) memcpy(d, v->data, v->n * v->size);
    free(v->data);
    v->data = d;
    v->cap = c;
  }
  void *p = (char *)v->data + v->n++ * v->size;
  memcpy(p, e, v->size);
  return p;
}
typedef struct {
  int k;
  double w;
} kw;
double loss(const double *x, long n) {
  vec a = {0, 0, sizeof(double), 0}, b = {0, 0, sizeof(kw), 0}, c = {0, 0, sizeof(int), 0};
  for (long i = 0; i < 2 * n; i++) {
    double d = x[i % n] * x[0];
    kw q = {(int)(i % 3), x[i % n]};
    int k = (int)((i * 7) % (2 * n));
    push(&a, &d);
    push(&b, &q);
    push(&c, &k);
  }
  double s = 0;
  for (size_t i = 0; i < a.n; i++) {
    kw *q = (kw *)b.data + i;
    s += ((double *)a.data)[((int *)c.data)[i]] * q->w * (q->k + 1);
  }
  free(a.data);
  free(b.data);
  free(c.data);
  return s;
}
