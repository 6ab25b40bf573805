/* Structs in memory that grows by realloc. */
#include <stdlib.h>
typedef struct {
  int id;
  double v[2];
  char tag;
  float f;
} rec;
double loss(const double *x, long n) {
  rec *r = 0;
  long m = 0, c = 0;
  for (long i = 0; i < 3 * n; i++) {
    if (m == c) {
      c = c ? c * 2 : 1;
      r = realloc(r, c * sizeof *r);
    }
    rec e = {(int)i, {x[i % n], x[(i + 1) % n] * x[0]}, 'a', 1.5f};
    if (m) e.v[0] += r[m - 1].v[1] * 0.3;
    r[m++] = e;
  }
  double s = 0;
  for (long i = 0; i < m; i++) s += r[i].v[0] * r[i].v[1] * (r[i].id % 5) * r[i].f;
  free(r);
  return s;
}
