#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
void energy(const double *x, double *out, int n);
int team(void);
void __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
}

int main(int, char **argv) {
  int n = std::atoi(argv[1]);
  std::vector<double> x(n), dx(n);
  double out = 0, one = 1;
#pragma omp parallel for
  for (int i = 0; i < n; i++) x[i] = 0.9 * i + 0.1 * std::cos(i);
  __enzyme_autodiff((void *)energy, enzyme_dup, x.data(), dx.data(), enzyme_dup, &out, &one, enzyme_const, n);
  double worst = 0;
  for (int i = 0; i < n; i++) {
    double want = 0.1 * std::cos(x[i]);
    if (i + 1 < n) want -= x[i + 1] - x[i] - 1;
    if (i > 0) want += x[i] - x[i - 1] - 1;
    worst = std::fmax(worst, std::fabs(dx[i] - want));
  }
  std::printf("%s on %d threads, differs by %g\n", worst < 1e-12 ? "right" : "wrong", team(), worst);
  return worst < 1e-12 ? 0 : 1;
}
