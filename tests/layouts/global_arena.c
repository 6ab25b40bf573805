/* An arena whose next free byte is a global variable; it is emptied and filled with other structs. */
#include <stdlib.h>
typedef struct {
  double a;
  int k;
  double b;
} A;
typedef struct {
  int k;
  float f;
  double p;
  void *q;
} B;
static char *top;
static void *take(size_t n) {
  void *p = top;
  top += (n + 7) / 8 * 8;
  return p;
}
double loss(const double *x, long n) {
  char *base = malloc(4096);
  double s = 1;
  for (int t = 0; t < 3; t++) {
    top = base;
    A *u = take(n * sizeof(A));
    for (long i = 0; i < n; i++) {
      u[i].a = x[i] * s;
      u[i].k = (int)i;
      u[i].b = x[i] * x[0];
    }
    double z = 0;
    for (long i = 0; i < n; i++) z += u[i].a * u[u[i].k].b;
    top = base;
    B *v = take(n * sizeof(B));
    for (long i = 0; i < n; i++) {
      v[i].k = (int)(n - 1 - i);
      v[i].f = 2;
      v[i].p = z * x[i];
      v[i].q = &v[i];
    }
    for (long i = 0; i < n; i++) s += 0.01 * ((B *)v[i].q)->p * v[v[i].k].f * v[v[i].k].p;
  }
  free(base);
  return s;
}
