/* Memory that is aligned by hand, with what malloc returned in front of it: copied whole, copied again, filled. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static double *get(long n) {
  void *raw = malloc(n * 8 + 64 + 8);
  uintptr_t p = ((uintptr_t)raw + 8 + 63) & ~(uintptr_t)63;
  ((void **)p)[-1] = raw;
  return (double *)p;
}
static void put(double *p) { free(((void **)p)[-1]); }
static double copied_again(const double *x, long n) {
  double *a = get(n), *b = get(n), *c = get(n), s = 0;
  for (long i = 0; i < n; i++) a[i] = x[i] * x[i];
  memcpy(b, a, n * 8); memcpy(c, b, n * 8);
  for (long i = 0; i < n; i++) s += c[i] * c[i] * a[i];
  put(a); put(b); put(c);
  return s;
}
static double written_after(const double *x, long n) {
  double *b = get(n), *c = get(n), *t = get(n), s = 0;
  for (long i = 0; i < n; i++) b[i] = sin(x[i]);
  memcpy(c, b, n * 8);
  for (long i = 0; i < n; i++) t[i] = c[(i + 1) % n] * x[i];
  for (long i = 0; i < n; i++) b[i] += t[i] * t[i];
  put(c);
  for (long i = 0; i < n; i++) s += t[i] * b[i];
  put(b); put(t);
  return s;
}
static double filled(const double *x, long n) {
  double *w = get(37), s = 0;
  memset(w, 0, 37 * 8);
  for (long i = 0; i < 40; i += 3) w[i % 37] += x[i % n] * x[(i + 1) % n];
  for (long i = 0; i < 37; i++) s += w[i] * w[i];
  put(w);
  return s;
}
double loss(const double *x, long n) { return copied_again(x, n) + written_after(x, n) + filled(x, n); }
