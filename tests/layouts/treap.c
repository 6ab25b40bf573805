/* an intrusive tree keyed by integers, with costs in its nodes, built by insertion with rotations (a treap) */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
struct link { struct link *child[2]; unsigned rank; };
struct item { int key; double cost; struct link link; float weight; double sum; };
#define ITEM(l) ((struct item *)((char *)(l) - offsetof(struct item, link)))
#include <stddef.h>
static void update(struct item *t) {
  t->sum = t->cost;
  for (int k = 0; k < 2; k++) if (t->link.child[k]) t->sum += 0.5 * ITEM(t->link.child[k])->sum;
}
static struct link *rotate(struct link *t, int side) {
  struct link *top = t->child[!side];
  t->child[!side] = top->child[side]; top->child[side] = t;
  update(ITEM(t)); update(ITEM(top));
  return top;
}
static struct link *insert(struct link *t, struct link *fresh) {
  if (!t) return fresh;
  int side = ITEM(fresh)->key > ITEM(t)->key;
  t->child[side] = insert(t->child[side], fresh);
  update(ITEM(t));
  return t->child[side]->rank > t->rank ? rotate(t, !side) : t;
}
static double walk(struct link *t, double depth) {
  if (!t) return 0;
  struct item *i = ITEM(t);
  return i->cost * i->weight * sin(i->sum) + depth * i->sum + walk(t->child[0], depth * 0.7) + walk(t->child[1], depth * 0.9);
}
static void drop(struct link *t) { if (t) { drop(t->child[0]); drop(t->child[1]); free(ITEM(t)); } }
double loss(const double *x, long n) {
  struct link *root = NULL;
  unsigned seed = 7;
  for (long i = 0; i < 3 * n; i++) {
    struct item *it = calloc(1, sizeof *it);
    seed = seed * 1664525u + 1013904223u;
    it->key = (int)(i * 7 % 11); it->cost = x[i % n] * (1 + 0.1 * i); it->weight = 2; it->link.rank = seed >> 8;
    update(it);
    root = insert(root, &it->link);
  }
  double r = walk(root, 1);
  drop(root);
  return r;
}
