/* An interpreter of expressions: values are numbers, pairs or vectors, made on one path as a number, on another as an
   address; the stack grows on the heap. */
#include <math.h>
#include <stdlib.h>
struct pair;
typedef struct { int tag; union { double number; struct pair *pair; double *row; } as; } value;
struct pair { value head, tail; };
typedef struct { value *base; long used, room; } stack;
static void push(stack *s, value v) {
  if (s->used == s->room) {
    s->room = s->room ? 2 * s->room : 2;
    s->base = realloc(s->base, s->room * sizeof(value));
  }
  s->base[s->used++] = v;
}
static value pop(stack *s) { return s->base[--s->used]; }
static value cons(value a, value b) {
  value v;
  v.tag = 1;
  v.as.pair = malloc(sizeof(struct pair));
  v.as.pair->head = a;
  v.as.pair->tail = b;
  return v;
}
static value number(double d) { value v = {0, {d}}; return v; }
static value pick(value a, value b, int which) { return which ? a : b; }
static value make(const double *x, long i) {
  value v;
  if (i % 3 == 0) { v.tag = 0; v.as.number = x[i] * x[i]; }
  else if (i % 3 == 1) { v = cons(number(sin(x[i])), number(2.0)); }
  else { v.tag = 2; v.as.row = malloc(2 * sizeof(double)); v.as.row[0] = x[i]; v.as.row[1] = x[i - 1]; }
  return v;
}
static double total(value v) {
  switch (v.tag) {
    case 0: return v.as.number;
    case 1: return total(v.as.pair->head) * (1 + total(v.as.pair->tail));
    default: return v.as.row[0] * v.as.row[1];
  }
}
double loss(const double *x, long n) {
  stack s = {0};
  value kept[3];
  for (long i = 0; i < n; i++) {
    value v = make(x, i);
    push(&s, v);
    kept[i % 3] = pick(v, number(i * 0.5), i != 4);
  }
  double sum = 0;
  for (int i = 0; i < 3; i++) push(&s, kept[i]);
  value swap = s.base[0];
  s.base[0] = s.base[s.used - 1];
  s.base[s.used - 1] = swap;
  push(&s, cons(s.base[1], s.base[2]));
  for (double w = 1; s.used; w += 0.5) {
    value v = pop(&s);
    if (v.tag == 0 && s.used > 2) v = cons(v, pop(&s));
    sum += w * total(v);
  }
  free(s.base);
  return sum;
}
