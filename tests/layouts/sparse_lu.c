/* sparse LU in compressed columns with a permutation, left-looking, growing arrays */
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct { int n, cap, *p, *i; double *x; } mat;
static mat fresh(int n, int cap) {
  mat a = {n, cap, calloc(n + 1, sizeof(int)), malloc(cap * sizeof(int)), malloc(cap * sizeof(double))};
  return a;
}
static void room(mat *a, int need) {
  if (need <= a->cap) return;
  a->cap = 2 * need;
  a->i = realloc(a->i, a->cap * sizeof(int));
  a->x = realloc(a->x, a->cap * sizeof(double));
}
static void drop(mat *a) { free(a->p); free(a->i); free(a->x); }
static void lu(const mat *a, mat *l, mat *u, int *pinv) {
  int n = a->n, nl = 0, nu = 0;
  double *w = calloc(n, sizeof *w);
  for (int r = 0; r < n; r++) pinv[r] = -1;
  for (int k = 0; k < n; k++) {
    memset(w, 0, n * sizeof *w);
    l->p[k] = nl; u->p[k] = nu;
    for (int q = a->p[k]; q < a->p[k + 1]; q++) w[a->i[q]] += a->x[q];
    for (int j = 0; j < k; j++) {
      int row = -1;
      for (int r = 0; r < n; r++) if (pinv[r] == j) row = r;
      double piv = w[row];
      if (piv == 0) continue;
      for (int q = l->p[j] + 1; q < l->p[j + 1]; q++) w[l->i[q]] -= l->x[q] * piv;
    }
    int best = -1; double most = -1;
    for (int r = 0; r < n; r++)
      if (pinv[r] < 0) { if (fabs(w[r]) > most) { most = fabs(w[r]); best = r; } }
      else { room(u, nu + 2); u->i[nu] = pinv[r]; u->x[nu++] = w[r]; }
    pinv[best] = k;
    u->i[nu] = k; u->x[nu++] = w[best];
    room(l, nl + n + 1);
    l->i[nl] = best; l->x[nl++] = 1;
    for (int r = 0; r < n; r++) if (pinv[r] < 0 && w[r] != 0) { l->i[nl] = r; l->x[nl++] = w[r] / w[best]; }
    l->p[k + 1] = nl; u->p[k + 1] = nu;
  }
  free(w);
}
double loss(const double *x, long n) {
  mat a = fresh((int)n, 4 * (int)n), l = fresh((int)n, 2), u = fresh((int)n, 2);
  int nz = 0, *pinv = malloc(n * sizeof *pinv);
  for (int c = 0; c < n; c++) {
    a.p[c] = nz;
    a.i[nz] = (c + 1) % (int)n; a.x[nz++] = 2 + x[c];
    a.i[nz] = (c + 4) % (int)n; a.x[nz++] = x[(c + 2) % n];
    a.i[nz] = c; a.x[nz++] = 0.3 * x[c] * x[(c + 1) % n];
    a.p[c + 1] = nz;
  }
  lu(&a, &l, &u, pinv);
  double *b = calloc(n, sizeof *b), *y = calloc(n, sizeof *y), s = 0;
  for (long r = 0; r < n; r++) b[r] = sin(x[r]);
  for (long r = 0; r < n; r++) y[pinv[r]] = b[r];
  for (int k = 0; k < n; k++) for (int q = l.p[k]; q < l.p[k + 1]; q++) if (pinv[l.i[q]] != k) y[pinv[l.i[q]]] -= l.x[q] * y[k];
  for (int k = (int)n - 1; k >= 0; k--) {
    y[k] /= u.x[u.p[k + 1] - 1];
    for (int q = u.p[k]; q < u.p[k + 1] - 1; q++) y[u.i[q]] -= u.x[q] * y[k];
  }
  for (long r = 0; r < n; r++) s += y[r] * y[r] * (r + 1);
  drop(&a); drop(&l); drop(&u); free(pinv); free(b); free(y);
  return s;
}
