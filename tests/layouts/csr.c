/* A sparse matrix as a struct of pointers, built by counting. */
#include <stdlib.h>
typedef struct { int rows, nonzeros; int *start, *column; double *value; } csr;
static csr build(const double *x, int n) {
  csr m = {n, 0, malloc((n + 1) * sizeof(int)), malloc(3 * n * sizeof(int)), malloc(3 * n * sizeof(double))};
  for (int i = 0; i < n; i++) {
    m.start[i] = m.nonzeros;
    for (int j = i - 1; j <= i + 1; j++) if (j >= 0 && j < n) { m.column[m.nonzeros] = j; m.value[m.nonzeros++] = x[i] * x[j] + (i == j); }
  }
  m.start[n] = m.nonzeros;
  return m;
}
static void multiply(const csr *m, const double *in, double *out) {
  for (int i = 0; i < m->rows; i++) { double s = 0; for (int k = m->start[i]; k < m->start[i + 1]; k++) s += m->value[k] * in[m->column[k]]; out[i] = s; }
}
double loss(const double *x, long n) {
  csr m = build(x, (int)n);
  double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), s = 0;
  for (long i = 0; i < n; i++) u[i] = 1 + 0.1 * i;
  for (int t = 0; t < 3; t++) { multiply(&m, u, v); double *w = u; u = v; v = w; }
  for (long i = 0; i < n; i++) s += u[i] * u[i];
  free(m.start); free(m.column); free(m.value); free(u); free(v);
  return s;
}
