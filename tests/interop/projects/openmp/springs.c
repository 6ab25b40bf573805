#include <math.h>
#include <omp.h>

/* The energy of a chain of springs between n points, and of the field that they are in. */
void energy(const double *x, double *out, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; i++) {
    double right = i + 1 < n ? x[i + 1] - x[i] - 1 : 0;
    sum += 0.5 * right * right + 0.1 * sin(x[i]);
  }
  *out = sum;
}

int team(void) {
  int threads = 0;
#pragma omp parallel
#pragma omp single
  threads = omp_get_num_threads();
  return threads;
}
