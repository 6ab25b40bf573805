#ifndef GRID_H
#define GRID_H
#include <stddef.h>
typedef struct { size_t rows, columns; double *now, *next; } grid;
grid *grid_new(size_t rows, size_t columns);
void grid_free(grid *g);
void step(grid *g, double rate);
double energy(const grid *g);
double simulated(const double *heat, size_t rows, size_t columns, double rate, int steps);
#endif
