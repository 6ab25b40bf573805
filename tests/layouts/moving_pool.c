/* bit fields beside doubles, tagged unions, chains in an arena that is moved by realloc (indices and offsets), error codes */
#include <math.h>
#include <stdlib.h>
#include <string.h>
enum { NUM = 1, ADD, MUL, FUN };
struct node { unsigned kind : 3, arity : 2, used : 1; unsigned next : 20; union { double num; struct { int a, b; } two; struct { int a; short fn; } one; }; };
struct pool { struct node *at; int n, cap; };
static int fresh(struct pool *p) {
  if (p->n == p->cap) { p->cap = p->cap ? 2 * p->cap : 2; p->at = realloc(p->at, p->cap * sizeof *p->at); if (!p->at) return -1; }
  memset(&p->at[p->n], 0, sizeof *p->at);
  return p->n++;
}
static int num(struct pool *p, double v) { int i = fresh(p); p->at[i].kind = NUM; p->at[i].num = v; return i; }
static int two(struct pool *p, int kind, int a, int b) { int i = fresh(p); p->at[i].kind = kind; p->at[i].arity = 2; p->at[i].two.a = a; p->at[i].two.b = b; return i; }
static int one(struct pool *p, int a, int fn) { int i = fresh(p); p->at[i].kind = FUN; p->at[i].arity = 1; p->at[i].one.a = a; p->at[i].one.fn = (short)fn; return i; }
static int eval(struct pool *p, int i, double *out) {
  struct node *t = &p->at[i];
  double a, b;
  int e;
  t->used = 1;
  switch (t->kind) {
  case NUM: *out = t->num; return 0;
  case ADD: case MUL:
    if ((e = eval(p, t->two.a, &a)) || (e = eval(p, t->two.b, &b))) return e;
    *out = t->kind == ADD ? a + b : a * b; return 0;
  case FUN:
    if ((e = eval(p, t->one.a, &a))) return e;
    if (t->one.fn == 2 && a < 0) return 5;
    *out = t->one.fn == 1 ? sin(a) : t->one.fn == 2 ? sqrt(a) : exp(0.3 * a); return 0;
  }
  return 9;
}
double loss(const double *x, long n) {
  struct pool p = {0};
  int top = num(&p, 0.5);
  for (long i = 0; i < n; i++) {
    int v = num(&p, x[i]);
    top = i % 2 ? two(&p, MUL, top, one(&p, v, i % 3)) : two(&p, ADD, top, two(&p, MUL, v, v));
  }
  double r = 0, q = 0;
  if (eval(&p, top, &r)) r = -1;
  if (eval(&p, one(&p, num(&p, r * r), 2), &q)) q = -2;
  int used = 0;
  for (int i = 0; i < p.n; i++) used += p.at[i].used;
  free(p.at);
  return r + 0.1 * q + used;
}
