/* double **, double (*)[N] and a flat matrix of the same numbers; rows are swapped as pointers. */
#include <math.h>
#include <stdlib.h>
static double **rows(int n, int m) { double **a = malloc(n * sizeof *a); for (int i = 0; i < n; i++) a[i] = calloc(m, sizeof **a); return a; }
double loss(const double *x, long n) {
  int m = (int)n;
  double **a = rows(m, m), (*b)[4] = malloc(m * sizeof *b);
  for (int i = 0; i < m; i++) for (int j = 0; j < m; j++) a[i][j] = x[(i + j) % m] * (i - j) + (i == j) * 3;
  for (int i = 0; i < m; i++) for (int j = 0; j < 4; j++) b[i][j] = x[i] * j;
  for (int k = 0; k < m; k++) {
    int p = k;
    for (int i = k + 1; i < m; i++) if (fabs(a[i][k]) > fabs(a[p][k])) p = i;
    double *r = a[p]; a[p] = a[k]; a[k] = r;
    for (int i = k + 1; i < m; i++) { double f = a[i][k] / a[k][k]; for (int j = k; j < m; j++) a[i][j] -= f * a[k][j]; for (int j = 0; j < 4; j++) b[i][j] -= f * b[k][j]; }
  }
  double s = 0;
  for (int i = 0; i < m; i++) { for (int j = 0; j < 4; j++) s += b[i][j] * b[i][j]; s += 0.1 * a[i][i]; free(a[i]); }
  free(a); free(b);
  return s;
}
