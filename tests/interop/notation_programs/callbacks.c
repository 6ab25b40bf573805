#include <alloca.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed = 0;

static int up(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
/* sorting: of numbers, of structs by an inactive key, by a comparison that is handed over or in a variable */
double sorted(const double *x, int n) {
  double t[8], s = 0;
  memcpy(t, x, n * sizeof *t);
  qsort(t, n, sizeof *t, up);
  for (int i = 0; i < n; i++) s += (i + 1) * t[i] * t[i];
  return s;
}
struct item { double key; int tag; double value; };
static int by_key(const void *a, const void *b) { return up(&((const struct item *)a)->key, &((const struct item *)b)->key); }
double items(const double *x, int n) {
  struct item *t = malloc(n * sizeof *t);
  double s = 0;
  for (int i = 0; i < n; i++) t[i] = (struct item){sin(7.0 * i), i, x[i] * x[i]};
  qsort(t, n, sizeof *t, by_key);
  for (int i = 0; i < n; i++) s += (i + 1) * t[i].value * (t[i].tag % 2 ? 1 : 2);
  free(t);
  return s;
}
static int (*chosen)(const void *, const void *);
double through(const double *x, int n) {
  double t[8];
  memcpy(t, x, n * sizeof *t);
  qsort(t, n, sizeof *t, chosen);
  return t[0] * t[n - 1];
}
/* functions of the library from a table that the program hands over */
typedef double (*maths)(double);
static double half(maths f, double x) { return f(x) * .5; }
/* searching: a table of constants, and one that is active */
double piece(const double *x, int n) {
  static const double knots[5] = {0, 1, 2, 3, 4};
  double key = floor(x[0]);
  const double *at = bsearch(&key, knots, 5, sizeof *knots, up);
  return at ? (x[0] - *at) * (x[0] - *at) * x[n - 1] : -1;
}
double found(const double *x, int n) {
  double t[4] = {x[1], x[3], x[0], x[2]}, q = x[0], z = -7;
  const double *at = bsearch(&q, t, 4, sizeof *t, up);
  return (at ? *at * *at * x[1] : -1) + (bsearch(&z, t, n, sizeof *t, up) ? 100 * x[0] : x[2]);
}
/* memory that grows, and memory on the stack whose size is known when it runs */
struct vec { double *data; int len, cap; };
static void push(struct vec *v, double x) {
  if (v->len == v->cap) v->data = realloc(v->data, (v->cap = v->cap ? 2 * v->cap : 1) * sizeof *v->data);
  v->data[v->len++] = x;
}
double grow(const double *x, int n) {
  struct vec v = {0};
  for (int i = 0; i < n; i++) push(&v, x[i] * (i ? v.data[i - 1] : 1));
  double s = v.data[n - 1] + v.data[1];
  free(v.data);
  return s;
}
double lengths(const double *x, int n) {
  double s = 0;
  for (int k = 1; k <= n; k++) {
    double t[k], *u = alloca(k * sizeof *u);
    for (int i = 0; i < k; i++) t[i] = x[i] * x[i], u[k - 1 - i] = t[i] * x[i];
    s += t[k - 1] * u[0] + u[k - 1];
  }
  return s;
}
static double weighted(int n, int m, double a[n][m]) {
  double t[m][n], s = 0;
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) t[j][i] = a[i][j] * a[i][j];
  for (int j = 0; j < m; j++) for (int i = 0; i < n; i++) s += t[j][i] * (1 + i + j);
  return s;
}
double table(const double *x, int n) {
  double b[n][2];
  for (int i = 0; i < n; i++) b[i][0] = x[i], b[i][1] = 2 * x[i];
  return weighted(n, 2, b);
}

#define CHECK(f) do { \
  double x[4] = {1.7, 0.3, 2.2, 1.1}, d[4] = {0}; \
  __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 4); \
  for (int i = 0; i < 4; i++) { \
    double y[4], e[4] = {0}, h = 1e-6; \
    memcpy(y, x, sizeof y); \
    y[i] += h; double a = f(y, 4); y[i] -= 2 * h; double w = (a - f(y, 4)) / (2 * h); \
    e[i] = 1; \
    double t = __enzyme_fwddiff((void *)f, enzyme_dup, x, e, enzyme_const, 4); \
    if (!(fabs(w - d[i]) <= 1e-6 * (1 + fabs(w)) && fabs(t - d[i]) <= 1e-12 * (1 + fabs(t)))) \
      printf(#f "[%d]: %g %g, not %g\n", i, d[i], t, w), failed = 1; \
  } } while (0)
int main(int argc, char **argv) {
  chosen = argc > 7 ? by_key : up;
  CHECK(sorted); CHECK(items); CHECK(through); CHECK(piece); CHECK(found); CHECK(grow); CHECK(lengths); CHECK(table);
  maths of[2] = {sin, exp};
  for (int k = 0; k < 2; k++)
    if (fabs(__enzyme_fwddiff((void *)half, enzyme_const, of[k * argc], 1.3, 1.) - (k ? exp(1.3) : cos(1.3)) / 2) > 1e-12) failed = 1;
  if (!failed) puts("all right");
  return failed;
}
