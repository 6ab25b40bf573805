/* Packed structs: floats at odd addresses. */
#include <stdlib.h>
#include <string.h>
#pragma pack(push, 1)
typedef struct {
  char k;
  double v;
  short s;
  float f;
  double w;
} p;
#pragma pack(pop)
double loss(const double *x, long n) {
  p *a = calloc(n, sizeof *a);
  for (long i = 0; i < n; i++) {
    a[i].k = (char)i;
    a[i].v = x[i];
    a[i].s = (short)(i * 3);
    a[i].f = 0.5f;
    a[i].w = x[i] * x[0];
  }
  p *b = malloc(n * sizeof *b);
  memcpy(b, a, n * sizeof *a);
  double s = 0;
  for (long i = 0; i < n; i++) s += b[i].v * b[i].w * b[i].f * (b[i].s + b[i].k + 1);
  free(a);
  free(b);
  return s;
}
