/* Nodes behind a header, copied byte by byte from block to block where the compiler knows what was stored: it takes the
   addresses apart, and moves what is left of the struct in one vector that begins inside of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
struct node { char kind; int count; struct node *next; double value; int more; };
static void by_bytes(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
}
static struct node made(struct node s, double y) { struct node *p = &s; p->value = p->value * 0.5 + y; return s; }
double loss(const double *x, long n) {
  char *first = malloc(16 + 3 * sizeof(struct node)), *second = malloc(16 + 3 * sizeof(struct node));
  *(int *)first = 3; *(int *)second = 3;
  struct node *a = (struct node *)(first + 16), *b = (struct node *)(second + 16);
  a[0] = (struct node){2, 1, &a[0], 0.5 * x[2] * cos(x[4]), 1};
  a[1] = (struct node){2, 2, &a[0], x[5] * tanh(a[0].next->value), 1};
  a[2] = (struct node){1, 2, &a[1], x[2] + 0.1 * x[0], 2};
  b[0] = (struct node){2, 2, &a[2], x[0] * tanh(a[0].value), 1};
  b[1] = (struct node){2, 1, &a[0], x[4] * tanh(a[2].next->value), 1};
  b[2] = (struct node){1, 1, &b[2], a[0].next->value + 0.1 * x[2], 1};
  b[1] = made(b[2], x[1]);
  by_bytes(&a[0], &b[0], sizeof(struct node));
  a[0].count += 1;
  memcpy(&b[2], &b[1], sizeof(struct node));
  double s = 0.5 * sin(a[0].next->value) + 0.01 * a[0].count + 0.02 * a[0].more + 0.03 * a[0].kind;
  for (int i = 0; i < 3; i++)
    s += (0.3 + i) * a[i].value * a[i].next->value + b[i].next->value * sin(b[i].value);
  free(first); free(second);
  return s;
}
