/* Pointers to rows of fixed length. */
#include <stdlib.h>
static double ***cube(int a, int b, int c) {
  double ***p = malloc(a * sizeof *p);
  double **q = malloc(a * b * sizeof *q);
  double *r = malloc((size_t)a * b * c * 8);
  for (int i = 0; i < a; i++) {
    p[i] = q + i * b;
    for (int j = 0; j < b; j++) p[i][j] = r + (i * b + j) * c;
  }
  return p;
}
double loss(const double *x, long n) {
  double ***u = cube(2, 3, (int)n);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < n; k++) u[i][j][k] = x[k] * (i + 1) + j * x[0];
  double s = 0;
  for (int i = 0; i < 2; i++)
    for (int j = 1; j < 3; j++)
      for (int k = 1; k < n; k++) s += u[i][j][k] * u[1 - i][j - 1][k - 1];
  free(u[0][0]);
  free(u[0]);
  free(u);
  return s;
}
