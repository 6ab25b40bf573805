/* Words that held counts hold the bits of doubles later, which are moved and exchanged as integers. */
#include <stdlib.h>
#include <string.h>
static double read_back(const long *w, long n) {
  double s = 0, d;
  for (long i = 0; i < n; i++) {
    memcpy(&d, &w[i], 8);
    s += d * d * (i + 1);
  }
  return s;
}
double loss(const double *x, long n) {
  long *w = malloc(32 * 8), *v = malloc(32 * 8);
  for (int i = 0; i < 32; i++) w[i] = i * i, v[i] = 0;
  for (long i = 0; i < n; i++) memcpy(&w[i], &x[i], 8);
  for (int i = 0; i < n / 2; i++) {
    long t = w[i];
    t ^= w[n - 1 - i];
    w[n - 1 - i] ^= t;
    w[i] = t ^ w[n - 1 - i];
  }
  v[4] = 1;
  v[1] = 2;
  double s = 0;
  for (int i = 0; i < v[1]; i++) s += x[v[4]];
  memcpy(v, x, 8 * n);
  long t = v[4];
  v[4] = v[1];
  v[1] = t;
  t ^= v[4];
  v[4] ^= t;
  v[1] = t ^ v[4];
  s += read_back(w, n) + read_back(v, n);
  free(w);
  free(v);
  return s;
}
