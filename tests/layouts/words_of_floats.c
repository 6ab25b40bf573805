/* Floats that are copied as integers, in a loop that is long enough for vectors. */
#include <stdlib.h>
typedef int __attribute__((may_alias)) word;
double loss(const double *x, long n) {
  long many = 40;
  float *from = malloc(many * sizeof *from), *to = malloc(many * sizeof *to);
  for (long i = 0; i < many; i++) from[i] = (float)(x[i % n] * x[(i + 1) % n]);
  word *source = (word *)from, *target = (word *)to;
  for (long i = 0; i < many; i++) target[many - 1 - i] = source[i];
  double s = 0;
  for (long i = 0; i < many; i++) s += to[i] * (double)(i + 1) * 0.01;
  free(from); free(to);
  return s;
}
