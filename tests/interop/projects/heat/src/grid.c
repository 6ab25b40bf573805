#include "grid.h"
#include "config.h"
#include <stdlib.h>
#include <string.h>
#ifndef HEAT_BUILD
#error "a definition of the target is missing"
#endif
grid *grid_new(size_t rows, size_t columns) {
  grid *g = malloc(sizeof *g);
  *g = (grid){rows, columns, calloc(rows * columns, sizeof(double)), calloc(rows * columns, sizeof(double))};
  return g;
}
void grid_free(grid *g) { free(g->now); free(g->next); free(g); }
double simulated(const double *heat, size_t rows, size_t columns, double rate, int steps) {
  grid *g = grid_new(rows, columns);
  memcpy(g->now, heat, rows * columns * sizeof *heat);
  for (int i = 0; i < steps; i++) step(g, rate);
  double sum = energy(g);
  grid_free(g);
  return sum;
}
