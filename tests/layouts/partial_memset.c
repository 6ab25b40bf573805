/* memset of the middle of an array. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
typedef struct {
  double a[4];
  int n;
  double b[3];
} T;
double loss(const double *x, long n) {
  T *t = malloc(sizeof *t);
  double s = 1;
  for (int r = 0; r < 3; r++) {
    for (int i = 0; i < 4; i++) t->a[i] = x[i] * s;
    for (int i = 0; i < 3; i++) t->b[i] = x[i + 1] * x[0];
    t->n = r;
    memset(&t->a[1], 0, 16);
    memset((char *)t + offsetof(T, b) + 8, 0, 8);
    for (int i = 0; i < 4; i++) s += t->a[i] * t->a[i] * 0.1;
    for (int i = 0; i < 3; i++) s += t->b[i] * (t->n + 1);
  }
  free(t);
  return s;
}
