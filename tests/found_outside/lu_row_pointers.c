/* Rows of a matrix on the heap through an array of pointers; pivoting swaps pointers and entries of x. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_const, enzyme_dup; void __enzyme_autodiff(void*,...);
static double solve(const double *A, const double *b, double *x, int n, int *swaps) {
  double *work = malloc(sizeof(double) * n * n);
  double **row = malloc(sizeof(double *) * n);
  memcpy(work, A, sizeof(double) * n * n);
  for (int i = 0; i < n; i++) { row[i] = work + i * n; x[i] = b[i]; }
  for (int k = 0; k < n; k++) {
    int p = k;
    for (int i = k + 1; i < n; i++) if (fabs(row[i][k]) > fabs(row[p][k])) p = i;
    if (p != k) { double *r = row[p]; row[p] = row[k]; row[k] = r; double t = x[p]; x[p] = x[k]; x[k] = t; ++*swaps; }
    for (int i = k + 1; i < n; i++) { double m = row[i][k] / row[k][k]; for (int j = k; j < n; j++) row[i][j] -= m * row[k][j]; x[i] -= m * x[k]; }
  }
  for (int i = n - 1; i >= 0; i--) { for (int j = i + 1; j < n; j++) x[i] -= row[i][j] * x[j]; x[i] /= row[i][i]; }
  double s = 0; for (int i = 0; i < n; i++) s += (i + 1) * x[i] * x[i];
  free(row); free(work); return s;
}
int main(void) {
  double A[9] = {0,2,1, 3,1,2, 1,1,4}, b[3] = {1,2,3}, x[3], dx[3] = {0}, g[9] = {0}, gb[3] = {0}; int s = 0, bad = 0;
  __enzyme_autodiff((void *)solve, enzyme_dup, A, g, enzyme_dup, b, gb, enzyme_dup, x, dx, enzyme_const, 3, enzyme_const, &s);
  double B[9]; memcpy(B, A, sizeof B);
  for (int i = 0; i < 9; i++) { double h = 1e-6; B[i] = A[i] + h; double u = solve(B, b, x, 3, &s); B[i] = A[i] - h; double l = solve(B, b, x, 3, &s); B[i] = A[i]; if (fabs((u - l) / (2 * h) - g[i]) > 1e-5) bad++; }
  return bad;
}
