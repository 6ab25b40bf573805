/* One array holds a double and an integer in turn; later the other way round. */
#include <stdlib.h>
double loss(const double *x, long n) {
  double *m = malloc(n * 16);
  double s = 0;
  for (long i = 0; i < n; i++) {
    m[2 * i] = x[i] * x[i];
    ((long *)m)[2 * i + 1] = (i * 3) % n;
  }
  for (long i = 0; i < n; i++) s += m[2 * ((long *)m)[2 * i + 1]] * (i + 1);
  for (long i = 0; i < n; i++) {
    ((long *)m)[2 * i] = i;
    m[2 * i + 1] = x[i] * s;
  }
  for (long i = 0; i < n; i++) s += m[2 * ((long *)m)[2 * (n - 1 - i)] + 1] * 0.1 * (i + 1);
  free(m);
  return s;
}
