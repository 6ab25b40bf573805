#include "../selfcheck.h"
#include <array>
#include <vector>
// Arrays of structs: fields that all iterations read, and fields that each one writes.
struct Particle {
  std::array<double, 2> at, speed;
  double mass;
  int kind;
  std::array<double, 2> force;
};
static double pull(const Particle &a, const Particle &b) {
  double x = b.at[0] - a.at[0], y = b.at[1] - a.at[1];
  return b.mass * (a.kind == b.kind ? 1.0 : 0.5) / (1.0 + x * x + y * y);
}
extern "C" double f(const double *x, double *y, int n) {
  std::vector<Particle> p(n);
  std::vector<int> beside(3 * n);
  for (int i = 0; i < n; i++) {
    p[i] = {{x[i], x[(i + 1) % n]}, {0.1 * x[i], 0.0}, 1.0 + 0.1 * x[i], i % 2, {0, 0}};
    for (int k = 0; k < 3; k++) beside[3 * i + k] = (i * (k + 2) + 1) % n;
  }
  for (int t = 0; t < n / 8; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {  // its own field, in place
      p[i].force = {0, 0};
      for (int j = 0; j < n; j++) {
        double g = pull(p[i], p[j]);
        for (int d = 0; d < 2; d++) p[i].force[d] += g * (p[j].at[d] - p[i].at[d]);
      }
    }
#pragma omp parallel for
    for (int i = 0; i < n; i++) {  // by a list of neighbours
      double s = 0;
      for (int k = 0; k < 3; k++) s += p[beside[3 * i + k]].at[1] * p[beside[3 * i + k]].mass;
      p[i].speed[0] += 0.01 * s * p[i].at[0];
    }
#pragma omp parallel for
    for (auto &one : p)
      for (int d = 0; d < 2; d++) {
        one.speed[d] += 0.05 * one.force[d] / one.mass;
        one.at[d] += 0.1 * one.speed[d];
      }
  }
  double energy = 0;
  for (int i = 0; i < n; i++) {
    y[i] = p[i].at[0];
    energy += p[i].mass * (p[i].speed[0] * p[i].speed[0] + p[i].speed[1] * p[i].at[1]);
  }
  return energy;
}
