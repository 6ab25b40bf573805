#include "orbit.h"
#include <math.h>
#include <stdio.h>
extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
int main(void) {
  const double wanted[3] = {0.1, 1.05, 0.2};
  struct body b = {{1, 0, 0}, {0.1, 1.05, 0.2}};
  advance(&b, 1, 0.01, 150);
  double speed[3] = {0, 1, 0}, slope[3] = {0}, more[3] = {1e-6, 1, 0}, less[3] = {-1e-6, 1, 0};
  __enzyme_autodiff((void *)miss, enzyme_dup, speed, slope, enzyme_const, b.at, enzyme_const, 1.0);
  double difference = (miss(more, b.at, 1) - miss(less, b.at, 1)) / 2e-6;
  if (!(fabs(slope[0] - difference) < 1e-7)) { printf("%g, not %g\n", slope[0], difference); return 1; }
  for (int t = 0; t < 400; t++) {
    double down[3] = {0};
    __enzyme_autodiff((void *)miss, enzyme_dup, speed, down, enzyme_const, b.at, enzyme_const, 1.0);
    for (int i = 0; i < 3; i++) speed[i] -= 0.08 * down[i];
  }
  printf("%.6f %.6f %.6f\n", speed[0], speed[1], speed[2]);
  for (int i = 0; i < 3; i++) if (!(fabs(speed[i] - wanted[i]) < 1e-4)) return 2;
  return 0;
}
