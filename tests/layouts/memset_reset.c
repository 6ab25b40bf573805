/* Accumulators that memset clears. */
#include <stdlib.h>
#include <string.h>
typedef struct {
  double acc[4];
  int n;
  double w;
} acc;
double loss(const double *x, long n) {
  acc *a = malloc(sizeof *a);
  double s = 1;
  for (int t = 0; t < 3; t++) {
    memset(a, 0, sizeof *a);
    for (long i = 0; i < n; i++) {
      a->acc[i % 4] += x[i] * s;
      a->n++;
      a->w += x[i];
    }
    for (int k = 0; k < 4; k++) s += a->acc[k] * a->w / a->n * 0.1;
  }
  free(a);
  return s;
}
