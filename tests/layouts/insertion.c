/* Insertion into a sorted array by memmove. */
#include <stdlib.h>
#include <string.h>
typedef struct {
  int id;
  double v;
} e;
double loss(const double *x, long n) {
  e *a = malloc((n + 1) * sizeof *a);
  long m = 0;
  for (long i = 0; i < n; i++) {
    long k = 0;
    while (k < m && a[k].v < x[i]) k++;
    memmove(a + k + 1, a + k, (m - k) * sizeof *a);
    a[k].id = (int)i;
    a[k].v = x[i];
    m++;
  }
  double s = 0;
  for (long i = 0; i < m; i++) s = s * 0.7 + a[i].v * a[i].v * (a[i].id + 1);
  memmove(a, a + 2, (m - 2) * sizeof *a);
  for (long i = 0; i < m - 2; i++) s += a[i].v * (i + 1);
  free(a);
  return s;
}
