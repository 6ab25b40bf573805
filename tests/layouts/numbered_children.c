/* Nodes that keep the numbers of their children, and what leads to each, in arrays of their own, beside a pointer. */
#include <stdlib.h>
#include <string.h>

typedef struct node {
  double value;
  int child[4];
  double flow[4];
  struct node *up;
  int children;
} node;

typedef struct {
  node *nodes;
  int *order, n, used[3];
  double sum;
} tree;

double loss(const double *x, long n) {
  tree t;
  memset(&t, 0, sizeof t);
  t.n = (int)n;
  t.nodes = calloc(n, sizeof *t.nodes);
  t.order = malloc(n * sizeof *t.order);
  for (int i = 0; i < t.n; i++) {
    t.nodes[i].value = x[i];
    t.order[i] = i * 5 % t.n;
    t.nodes[i].up = i ? &t.nodes[(i - 1) / 3] : NULL;
  }
  for (int i = 1; i < t.n; i++) {
    node *p = t.nodes[i].up;
    p->child[p->children] = i;
    p->flow[p->children++] = x[i] * x[(i + 1) % n];
  }
  for (int i = 0; i < t.n; i++) {
    node *p = &t.nodes[t.order[i]];
    t.used[t.order[i] / 32] |= 1 << (t.order[i] & 31);
    for (int c = 0; c < p->children; c++) t.sum += p->flow[c] * t.nodes[p->child[c]].value;
    if (p->up) t.sum += p->up->flow[p->up->children - 1] * p->value;
  }
  double result = t.sum + t.used[0];
  free(t.nodes);
  free(t.order);
  return result;
}
