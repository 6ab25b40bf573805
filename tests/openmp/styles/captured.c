#include "../selfcheck.h"
// Atomic operations of all kinds; places that threads take by a counter.
double f(const double *x, double *y, int n) {
  int next = 0;
  double sum = 0, most = 0, list[N], product = 1;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    if (x[i] > 0.6) {
      int at;
#pragma omp atomic capture
      at = next++;
      list[at] = x[i] * x[i];
    }
    double v = cos(x[i]);
#pragma omp atomic
    sum += v;
#pragma omp atomic
    product *= 1 + 0.1 * v;
#pragma omp critical(largest)
    if (v * x[i] > most) most = v * x[i];
  }
  double t = 0;
#pragma omp parallel for reduction(+ : t)
  for (int i = 0; i < next; i++) t += sin(list[i]);
  for (int i = 0; i < n; i++) y[i] = x[i] * t;
  return sum * most * product + t;
}
