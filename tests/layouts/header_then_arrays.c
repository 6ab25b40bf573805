/* One allocation: a header of ints and pointers, behind it the arrays that the pointers name. */
#include <math.h>
#include <stdlib.h>
typedef struct { int rows, columns; long size; double *a, *b; int *index; } table;
static table *table_new(int rows, int columns) {
  size_t n = (size_t)rows * columns;
  table *t = malloc(sizeof *t + 2 * n * sizeof(double) + n * sizeof(int));
  t->rows = rows; t->columns = columns; t->size = (long)n;
  t->a = (double *)(t + 1); t->b = t->a + n; t->index = (int *)(t->b + n);
  return t;
}
double loss(const double *x, long n) {
  table *t = table_new(2, (int)n);
  for (int i = 0; i < t->rows; i++)
    for (int j = 0; j < t->columns; j++) {
      t->a[i * t->columns + j] = x[j] * (i + 1);
      t->index[i * t->columns + j] = (j + i) % t->columns;
    }
  for (long k = 0; k < t->size; k++) t->b[k] = sin(t->a[t->index[k]]) * t->a[k];
  double s = 0;
  for (long k = 0; k < t->size; k++) s += t->b[k] * (k + 1);
  free(t);
  return s;
}
