/* A static workspace that is allocated again when a call needs more than the one before. */
#include <stdlib.h>
static double *work, *more;
static long room, space;
double loss(const double *x, long n) {
  if (room < n) { free(work); work = malloc(n * sizeof *work); room = n; }
  if (space < 2 * n) { more = realloc(more, 2 * n * sizeof *more); space = 2 * n; }
  for (long i = 0; i < n; i++) work[i] = x[i] * x[0];
  for (long i = 0; i < 2 * n; i++) more[i] = work[i % n] * work[i / 2];
  double s = 0;
  for (long i = 0; i < 2 * n; i++) s = 0.9 * s + more[i] * more[i];
  return s;
}
