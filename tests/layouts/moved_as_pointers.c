/* A union is moved as the pointer that it may hold, whatever it holds. */
#include <stdlib.h>
#include <math.h>
typedef struct { int tag; union { double d; double *p; } u; } item;
static void __attribute__((noinline)) move(item *to, const item *from) { to->tag = from->tag; to->u.p = from->u.p; }
double loss(const double *x, long n) {
  item *a = malloc((n + 1) * sizeof *a);
  for (long i = 0; i < n; i++) {
    a[i].tag = i % 2;
    if (a[i].tag) a[i].u.d = sin(x[i]);
    else { double *c = malloc(8); *c = x[i] * x[i]; a[i].u.p = c; }
  }
  for (long i = 0; i + 1 < n; i += 2) { move(a + n, a + i); move(a + i, a + i + 1); move(a + i + 1, a + n); }
  double s = 0;
  for (long i = 0; i < n; i++) s += (i + 1) * (a[i].tag ? a[i].u.d : *a[i].u.p);
  return s;
}
