/* A stack of fixed capacity with its length behind it, in a variable and in a block. */
#include <stdlib.h>
typedef struct {
  double items[16];
  long length;
} stack;
static void push(stack *s, double v) {
  s->items[s->length] = v;
  s->length += 1;
}
static double pop(stack *s) {
  s->length -= 1;
  return s->items[s->length];
}
static double run(stack *s, const double *x, long n) {
  s->length = 0;
  for (long i = 0; i < n; i++) {
    push(s, x[i] * x[i]);
    if (i % 3 == 2) {
      double a = pop(s), b = pop(s);
      push(s, a * b + a);
    }
  }
  double r = 0;
  while (s->length > 0) r = r * 0.5 + pop(s);
  return r;
}
double loss(const double *x, long n) {
  stack here, *there = malloc(sizeof *there);
  double r = run(&here, x, n) * run(there, x, n);
  free(there);
  return r;
}
