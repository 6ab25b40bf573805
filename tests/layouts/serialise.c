/* Structs are written into a buffer of bytes and read again. */
#include <stdlib.h>
#include <string.h>
double loss(const double *x, long n) {
  char *buf = malloc(64 * n);
  size_t at = 0;
  for (long i = 0; i < n; i++) {
    int k = (int)i;
    double d = x[i] * x[i];
    float f = 0.5f;
    memcpy(buf + at, &k, 4);
    at += 4;
    memcpy(buf + at, &d, 8);
    at += 8;
    if (i % 2) {
      memcpy(buf + at, &f, 4);
      at += 4;
    }
  }
  double s = 0;
  size_t p = 0;
  while (p < at) {
    int k;
    double d;
    float f = 1;
    memcpy(&k, buf + p, 4);
    p += 4;
    memcpy(&d, buf + p, 8);
    p += 8;
    if (k % 2) {
      memcpy(&f, buf + p, 4);
      p += 4;
    }
    s += d * (k + 1) * f;
  }
  free(buf);
  return s;
}
