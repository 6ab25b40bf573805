#include "../selfcheck.h"
#include <utility>
#include <vector>
// Arrays that change places between steps: which one a sweep goes through is known when it runs.
static void smooth(const double *u, double *v, int n, double c) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) v[i] = u[i] + c * (u[(i + n - 1) % n] * u[i] + u[(i + 1) % n] - 2 * u[i]);
}
extern "C" double f(const double *x, double *y, int n) {
  std::vector<double> u(x, x + n), v(n);
  for (int t = 0; t < n / 5; t++) {
    smooth(u.data(), v.data(), n, 0.1);
    std::swap(u, v);
  }
  for (int t = 0; t < n / 5; t++) {
    std::vector<double> next(n);
    smooth(u.data(), next.data(), n, 0.05);
    u = std::move(next);
  }
  double *a = (double *)malloc(n * sizeof(double)), *b = (double *)malloc(n * sizeof(double));
  for (int i = 0; i < n; i++) a[i] = x[i] * u[i];
  for (int t = 0; t < n / 7; t++) {
    smooth(a, b, n, 0.2);
    double *c = a; a = b; b = c;
  }
  std::vector<std::vector<double>> rows(4, u);
  for (int t = 0; t + 1 < 4; t++) smooth(rows[t].data(), rows[t + 1].data(), n, 0.1 * t);
  double e = 0;
  for (int i = 0; i < n; i++) { y[i] = u[i] + a[i]; e += u[i] * u[i] * rows[3][i]; }
  free(a); free(b);
  return e;
}
