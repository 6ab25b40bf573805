#include <omp.h>
#include <vector>
#include <cmath>
#include <stdexcept>
struct Team { int me, all; double scale; Team() : me(omp_get_thread_num()), all(omp_get_num_threads()), scale(1.0 + me) {}
  int lo(int n) const { return (long)n * me / all; } int hi(int n) const { return (long)n * (me + 1) / all; } };
extern "C" double f(const double *x, double *y, int n) {
  std::vector<double> part(8, 0.0);
#pragma omp parallel num_threads(4)
  {
    Team t; std::vector<double> own;
    for (int i = t.lo(n); i < t.hi(n); i++) own.push_back(std::sin(x[i]) * t.scale);
    for (double v : own) part[t.me] += v;
#pragma omp barrier
    double before = 0;
    for (int k = 0; k < t.me; k++) before += part[k];
    for (size_t k = 0; k < own.size(); k++) y[t.lo(n) + k] = own[k] * before;
    try { if (part[t.me] > 1e9) throw std::runtime_error("large"); } catch (const std::exception &) { y[0] = 0; }
  }
  double s = 0;
  for (double v : part) s += v * v;
  return s;
}
