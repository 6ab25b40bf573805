#include "grid.h"
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
enum { ROWS = 7, COLUMNS = 6, CELLS = ROWS * COLUMNS, STEPS = 9 };
int main(void) {
  double heat[CELLS], adjoint[CELLS] = {0}, direction[CELLS], rate = 0.1, along = 0;
  for (int i = 0; i < CELLS; i++) heat[i] = sin(i * 0.7) + 0.2 * i, direction[i] = cos(i * 1.3);
  __enzyme_autodiff((void *)simulated, enzyme_dup, heat, adjoint, (size_t)ROWS, (size_t)COLUMNS, enzyme_const, rate, STEPS);
  for (int i = 0; i < CELLS; i++) along += adjoint[i] * direction[i];
  double tangent = __enzyme_fwddiff((void *)simulated, enzyme_dup, heat, direction, (size_t)ROWS, (size_t)COLUMNS,
                                    enzyme_const, rate, STEPS);
  double more[CELLS], less[CELLS], h = 1e-5;
  for (int i = 0; i < CELLS; i++) more[i] = heat[i] + h * direction[i], less[i] = heat[i] - h * direction[i];
  double difference = (simulated(more, ROWS, COLUMNS, rate, STEPS) - simulated(less, ROWS, COLUMNS, rate, STEPS)) / (2 * h);
  printf("%.12g %.12g %.12g\n", along, tangent, difference);
  return !(fabs(along - tangent) < 1e-11 * fabs(tangent) && fabs(tangent - difference) < 1e-7 * fabs(tangent));
}
