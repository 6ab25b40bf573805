/* Elements change places through a temporary of bytes. */
#include <stdlib.h>
#include <string.h>
static void swap(void *a, void *b, size_t n) {
  char t[64];
  memcpy(t, a, n);
  memcpy(a, b, n);
  memcpy(b, t, n);
}
typedef struct {
  double k;
  long id;
  float f;
  double *self;
} e;
double loss(const double *x, long n) {
  e *a = malloc(n * sizeof *a);
  double y[8];
  for (long i = 0; i < n; i++) {
    y[i % 8] = x[i] * x[i];
    a[i].k = x[i];
    a[i].id = i;
    a[i].f = 1;
    a[i].self = &y[i % 8];
  }
  for (long i = 0; i < n; i++)
    for (long j = 0; j + 1 < n - i; j++)
      if (a[j].k > a[j + 1].k) swap(&a[j], &a[j + 1], sizeof *a);
  double s = 0;
  for (long i = 0; i < n; i++) s += a[i].k * (i + 1) + *a[i].self * (a[i].id + 1) * a[i].f * 0.1;
  free(a);
  return s;
}
