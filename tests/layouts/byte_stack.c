/* Values of different size are pushed on a stack of bytes, and popped. */
#include <stdlib.h>
#include <string.h>
typedef struct {
  char bytes[256];
  int top;
} st;
static void push(st *s, const void *p, int n) {
  memcpy(s->bytes + s->top, p, n);
  s->top += n;
}
static void pop(st *s, void *p, int n) {
  s->top -= n;
  memcpy(p, s->bytes + s->top, n);
}
double loss(const double *x, long n) {
  st s;
  s.top = 0;
  for (int i = 0; i < n; i++) {
    double d = x[i] * x[i];
    push(&s, &d, 8);
    push(&s, &i, 4);
  }
  double r = 0;
  for (int i = 0; i < n; i++) {
    int k;
    double d;
    pop(&s, &k, 4);
    pop(&s, &d, 8);
    r = r * 0.5 + d * (k + 1);
  }
  return r;
}
