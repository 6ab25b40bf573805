/* Structures that are taken for others by casts of addresses within them: a link in the middle taken for a list, a
   `void *` taken for an array of numbers, a header taken for one that is like its end. The fields that are read so are
   beside others of the same structures that hold other numbers. */
#include <math.h>
#include <stdlib.h>

struct link { struct link *next; double *value; };
struct item { double weight; double *other; struct link *next; double *value; struct link own; };
struct box { long tag; void *content; void *spare; };
struct tail { void *content; void *spare; };

static struct item *item_new(double weight, double value, double other) {
  struct item *it = malloc(sizeof *it);
  it->weight = weight;
  it->value = malloc(sizeof(double));
  *it->value = value;
  it->other = malloc(sizeof(double));
  *it->other = other;
  it->own.next = NULL;
  it->own.value = it->other;
  it->next = NULL;
  return it;
}

__attribute__((noinline)) static double walk(struct link *at) {
  double s = 0;
  for (int k = 1; at; at = at->next, k++) s += k * *at->value * *at->value;
  return s;
}

__attribute__((noinline)) static double numbers(struct box *b, long n) {
  double *v = *(double **)&b->content, s = 0;
  for (long i = 0; i < n; i++) s += sin(v[i]);
  return s;
}

__attribute__((noinline)) static double ends(struct tail *t) {
  double *a = t->content, *b = t->spare;
  return a[0] * b[1];
}

double loss(const double *x, long n) {
  struct item *items[3];
  for (int i = 0; i < 3; i++) items[i] = item_new(x[i], x[i] * x[i + 1], x[i + 2]);
  for (int i = 0; i < 2; i++) {
    items[i]->next = (struct link *)&items[i + 1]->next;
    items[i]->own.next = &items[i + 1]->own;
  }
  double s = walk((struct link *)&items[0]->next) + 0.5 * walk(&items[0]->own);
  struct box *b = malloc(2 * sizeof *b);
  for (int k = 0; k < 2; k++) {
    double *v = malloc(n * sizeof(double)), *w = malloc(n * sizeof(double));
    for (long i = 0; i < n; i++) { v[i] = x[i] * x[(i + k + 1) % n]; w[i] = exp(-x[i]) + k; }
    b[k].tag = k; b[k].content = v; b[k].spare = w;
  }
  s += numbers(&b[0], n) * numbers(&b[1], n) + ends((struct tail *)&b[1].content);
  for (int k = 0; k < 2; k++) { free(b[k].content); free(b[k].spare); }
  free(b);
  for (int i = 0; i < 3; i++) { s += items[i]->weight * *items[i]->other; free(items[i]->value); free(items[i]->other); free(items[i]); }
  return s;
}
