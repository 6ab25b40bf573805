/* A tree whose nodes hold counts, keys, values and children in arrays. */
#include <stdlib.h>
enum { MOST = 3 };
typedef struct node { int count, leaf; long keys[MOST]; double values[MOST]; struct node *children[MOST + 1]; } node;
static node *fresh(int leaf) { node *t = calloc(1, sizeof *t); t->leaf = leaf; return t; }
static void split(node *parent, int i) {
  node *full = parent->children[i], *right = fresh(full->leaf);
  right->count = 1; right->keys[0] = full->keys[2]; right->values[0] = full->values[2];
  if (!full->leaf) { right->children[0] = full->children[2]; right->children[1] = full->children[3]; }
  full->count = 1;
  for (int k = parent->count; k > i; k--) { parent->keys[k] = parent->keys[k - 1]; parent->values[k] = parent->values[k - 1]; parent->children[k + 1] = parent->children[k]; }
  parent->keys[i] = full->keys[1]; parent->values[i] = full->values[1]; parent->children[i + 1] = right; parent->count++;
}
static void add(node **root, long key, double value) {
  if ((*root)->count == MOST) { node *r = fresh(0); r->children[0] = *root; split(r, 0); *root = r; }
  node *t = *root;
  for (;;) {
    int i = 0;
    while (i < t->count && t->keys[i] < key) i++;
    if (t->leaf) { for (int k = t->count; k > i; k--) { t->keys[k] = t->keys[k - 1]; t->values[k] = t->values[k - 1]; } t->keys[i] = key; t->values[i] = value; t->count++; return; }
    if (t->children[i]->count == MOST) { split(t, i); if (t->keys[i] < key) i++; }
    t = t->children[i];
  }
}
static double walk(const node *t, double s) {
  for (int i = 0; i <= t->count; i++) { if (!t->leaf) s = walk(t->children[i], s); if (i < t->count) s = 0.8 * s + t->values[i] * t->values[i] * (double)t->keys[i]; }
  return s;
}
static void drop(node *t) { if (!t->leaf) for (int i = 0; i <= t->count; i++) drop(t->children[i]); free(t); }
double loss(const double *x, long n) {
  node *root = fresh(1);
  for (long i = 0; i < 2 * n; i++) add(&root, (i * 7) % 13, x[i % n] * (i + 1));
  double s = walk(root, 1);
  drop(root);
  return s;
}
