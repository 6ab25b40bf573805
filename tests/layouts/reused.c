/* The same block is ints, then doubles, then floats. */
#include <stdlib.h>
#include <string.h>
double loss(const double *x, long n) {
  void *block = malloc(n * sizeof(double));
  int *order = block; long sum = 0;
  for (long i = 0; i < n; i++) order[i] = (int)((i * 3) % n);
  for (long i = 0; i < n; i++) sum += order[i];
  double *d = block;
  for (long i = 0; i < n; i++) d[i] = x[i] * x[i] * (double)sum;
  double s = 0;
  for (long i = 0; i < n; i++) s += d[i] * (i + 1);
  float *f = block;
  for (long i = 0; i < n; i++) f[i] = (float)i;
  for (long i = 0; i < n; i++) s += f[i] * x[i];
  free(block);
  return s;
}
