/* An expression tree of tagged unions. */
#include <math.h>
#include <stdlib.h>
typedef struct expr { int tag; union { double number; int variable; struct { struct expr *left, *right; } pair; } u; } expr;
static expr *number(double v) { expr *e = malloc(sizeof *e); e->tag = 0; e->u.number = v; return e; }
static expr *variable(int i) { expr *e = malloc(sizeof *e); e->tag = 1; e->u.variable = i; return e; }
static expr *pair(int tag, expr *l, expr *r) { expr *e = malloc(sizeof *e); e->tag = tag; e->u.pair.left = l; e->u.pair.right = r; return e; }
static double value(const expr *e, const double *x) {
  switch (e->tag) {
  case 0: return e->u.number;
  case 1: return x[e->u.variable];
  case 2: return value(e->u.pair.left, x) + value(e->u.pair.right, x);
  case 3: return value(e->u.pair.left, x) * value(e->u.pair.right, x);
  default: return sin(value(e->u.pair.left, x)) * value(e->u.pair.right, x);
  }
}
static void drop(expr *e) { if (e->tag > 1) { drop(e->u.pair.left); drop(e->u.pair.right); } free(e); }
double loss(const double *x, long n) {
  expr *e = number(x[0] * 0.5);
  for (int i = 0; i < n; i++) e = pair(2 + i % 3, e, pair(3, variable(i), number(i + 1 + x[i])));
  double s = value(e, x);
  drop(e);
  return s;
}
