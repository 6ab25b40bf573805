/* A linked list, reversed in place. */
#include <stdlib.h>
typedef struct e {
  struct e *next;
  float w;
  double v;
} e;
double loss(const double *x, long n) {
  e *h = 0;
  for (long i = 0; i < n; i++) {
    e *p = malloc(sizeof *p);
    p->v = x[i];
    p->w = (float)i;
    p->next = h;
    h = p;
  }
  e *r = 0;
  double s = 1;
  while (h) {
    e *t = h->next;
    h->next = r;
    r = h;
    h->v *= s;
    s += h->v * h->w * 0.1;
    h = t;
  }
  double z = 0;
  for (e *p = r; p; p = p->next) z = z * 0.9 + p->v * p->v;
  while (r) {
    e *t = r->next;
    free(r);
    r = t;
  }
  return z;
}
