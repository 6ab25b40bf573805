#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Addresses of __enzyme_todense: a ring of springs, values that functions give, Jacobians, reverse mode, no derivative */
extern int enzyme_dup, enzyme_dupnoneed, enzyme_const, enzyme_width;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
double *__enzyme_todense(void *, void *, ...);
enum { N = 12 };
static int bad;
static void near(const char *what, int r, int c, double a, double b) {
  if (!(fabs(a - b) < 1e-8 * (1 + fabs(b)))) { printf("%s %d %d: %.12g, not %.12g\n", what, r, c, a, b); bad = 1; }
}

struct triplets { size_t count; struct { size_t row, column; double value; } at[1000]; };
static double one_load(size_t byte, size_t column) { return byte / sizeof(double) == column; }
static void no_store(double value, size_t byte, size_t column) { abort(); }
static double zero_load(size_t byte, size_t column, struct triplets *t) { return 0; }
__attribute__((enzyme_sparse_accumulate))
static void add(size_t row, size_t column, double value, struct triplets *t) {
  t->at[t->count].row = row; t->at[t->count].column = column; t->at[t->count++].value = value;
}
static void triplet_store(double value, size_t byte, size_t column, struct triplets *t) {
  if (value == 0) return;
  add(byte / sizeof(double), column, value, t);
}
static void dense(const struct triplets *t, double h[N][N]) {
  memset(h, 0, sizeof(double[N][N]));
  for (size_t k = 0; k < t->count; k++) h[t->at[k].row][t->at[k].column] += t->at[k].value;
}

static double energy(size_t n, const double *x) {
  double e = 0;
  for (size_t i = 0; i < n; i++) {
    double d = x[(i + 1) % n] - x[i];
    e += (sqrt(d * d + 0.5) - 1) * (sqrt(d * d + 0.5) - 1);
  }
  return e;
}
static void gradient(size_t n, const double *x, double *g) {
  __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, g);
}
static void differences(const double *x, double h[N][N]) {
  for (int c = 0; c < N; c++) {
    double up[N] = {0}, down[N] = {0}, y[N];
    memcpy(y, x, sizeof y);
    y[c] = x[c] + 1e-5; gradient(N, y, up);
    y[c] = x[c] - 1e-5; gradient(N, y, down);
    for (int r = 0; r < N; r++) h[r][c] = (up[r] - down[r]) / 2e-5;
  }
}
static struct triplets hessian, other;
static void springs(const double *x) {
  double h[N][N], want[N][N];
  for (size_t c = 0; c < N; c++)
    __enzyme_fwddiff((void *)gradient, enzyme_const, (size_t)N,
                     enzyme_dup, x, __enzyme_todense((void *)one_load, (void *)no_store, c),
                     enzyme_dupnoneed, NULL, __enzyme_todense((void *)zero_load, (void *)triplet_store, c, &hessian));
  dense(&hessian, h);
  differences(x, want);
  for (int i = 0; i < N * N; i++) near("springs", i / N, i % N, h[0][i], want[0][i] );
  near("triplets", 0, 0, hessian.count, 3 * N);
}

/* The values of x come from a function too, with 32 bits for the place; the shadow begins in the middle. */
static double wrapped_load(int32_t byte, const double *x, size_t n) { return x[(byte / 8) % n]; }
static void wrapped_store(double value, int32_t byte, const double *x, size_t n) { abort(); }
static double wrapped_one(size_t byte, size_t column, size_t n) { return (byte / 8) % n == column; }
static void wrapped_no(double value, size_t byte, size_t column, size_t n) { abort(); }
static double open_energy(size_t n, const double *x) {
  double e = 0;
  for (size_t i = 0; i < n; i++) { double d = x[i + 1] - x[i]; e += (sqrt(d * d + 0.5) - 1) * (sqrt(d * d + 0.5) - 1); }
  return e;
}
static void open_gradient(size_t n, const double *x, double *g) {
  __enzyme_autodiff((void *)open_energy, enzyme_const, n, enzyme_dup, x, g);
}
static double shifted_load(size_t byte, struct triplets *t, size_t column) { return 0; }
static void shifted_store(double value, size_t byte, struct triplets *t, size_t column) {
  if (value != 0) add((byte / 8 - 100) % N, column, value, t);
}
static void periodic(const double *x) {
  double h[N][N], want[N][N];
  const double *values = __enzyme_todense((void *)wrapped_load, (void *)wrapped_store, x, (size_t)N);
  for (size_t c = 0; c < N; c++) {
    double *dg = __enzyme_todense((void *)shifted_load, (void *)shifted_store, &other, c);
    __enzyme_fwddiff((void *)open_gradient, enzyme_const, (size_t)N,
                     enzyme_dup, values, __enzyme_todense((void *)wrapped_one, (void *)wrapped_no, c, (size_t)N),
                     enzyme_dupnoneed, (double *)1, dg + 100);
  }
  dense(&other, h);
  differences(x, want);
  for (int i = 0; i < N * N; i++) near("periodic", i / N, i % N, h[0][i], want[0][i]);
  near("a value", 0, 0, values[N + 3], x[3]);
}

/* The columns of a Jacobian; the output is cleared, written twice, read, and wanted or not. */
static void residual(const double *x, double *r) {
  memset(r, 0, N * sizeof *r);
  for (int i = 0; i < N; i++) r[i] = 3 * x[i];
  for (int i = 1; i < N; i++) r[i] = x[i] * x[i - 1] + r[i] * 0.5;
  for (int i = 0; i < N; i += 3) r[i] *= r[i];
}
static void jacobian(const double *x, int wanted) {
  double h[N][N], r[N], want[N];
  residual(x, want);
  other.count = 0;
  for (size_t c = 0; c < N; c++) {
    double *dx = __enzyme_todense((void *)one_load, (void *)no_store, c);
    double *dr = __enzyme_todense((void *)zero_load, (void *)triplet_store, c, &other);
    if (wanted) __enzyme_fwddiff((void *)residual, enzyme_dup, x, dx, enzyme_dup, r, dr);
    else __enzyme_fwddiff((void *)residual, enzyme_dup, x, dx, enzyme_dupnoneed, NULL, dr);
  }
  dense(&other, h);
  for (int i = 0; i < N; i++)
    for (int c = 0; c < N; c++) {
      double base = i ? x[i] * x[i - 1] + 1.5 * x[i] : 3 * x[0];
      double slope = c == i ? (i ? x[i - 1] + 1.5 : 3) : i && c == i - 1 ? x[i] : 0;
      near("jacobian", i, c, h[i][c], i % 3 ? slope : 2 * base * slope);
      if (wanted) near("residual", i, 0, r[i], want[i]);
    }
}

/* Reverse mode: what is added to the shadow goes to a function, once for each place. */
static double kept[N];
static int stores;
static double kept_load(size_t byte) { return kept[byte / 8]; }
static void kept_store(double value, size_t byte) { kept[byte / 8] = value; stores++; }
static double squares(const double *x) {
  double s = 0;
  for (int i = 0; i < N; i++) s += x[i] * x[i] * x[(i * 5) % N];
  return s;
}
static void backwards(const double *x) {
  double want[N] = {0};
  __enzyme_autodiff((void *)squares, enzyme_dup, x, want);
  for (int i = 0; i < N; i++) kept[i] = 0.25;
  __enzyme_autodiff((void *)squares, enzyme_dup, x, __enzyme_todense((void *)kept_load, (void *)kept_store));
  for (int i = 0; i < N; i++) near("reverse", i, 0, kept[i], want[i] + 0.25);
  near("stores", 0, 0, stores, N);
}

/* Two columns at once. */
static void wide(const double *x) {
  double h[N][N], want[N][N];
  struct triplets *both = calloc(1, sizeof *both);
  for (size_t c = 0; c < N; c += 2)
    __enzyme_fwddiff((void *)gradient, enzyme_width, 2, enzyme_const, (size_t)N,
                     enzyme_dup, x, __enzyme_todense((void *)one_load, (void *)no_store, c),
                     __enzyme_todense((void *)one_load, (void *)no_store, c + 1),
                     enzyme_dupnoneed, NULL, __enzyme_todense((void *)zero_load, (void *)triplet_store, c, both),
                     __enzyme_todense((void *)zero_load, (void *)triplet_store, c + 1, both));
  dense(both, h);
  differences(x, want);
  for (int i = 0; i < N * N; i++) near("wide", i / N, i % N, h[0][i], want[0][i]);
  free(both);
}

/* Addresses that are kept: in a table of pointers of the function, and in the tape. */
static double linked(const double *x) {
  const double *at[N];
  double s = 0;
  for (int i = 0; i < N; i++) at[i] = &x[(5 * i + 2) % N];
  for (int i = 1; i < N; i++) {
    const double *p = *at[i] > 1.5 ? at[i] : at[i - 1];
    s += *p * *p * *at[i];
    at[i] = p;
  }
  return s;
}
static void linked_gradient(const double *x, double *g) { __enzyme_autodiff((void *)linked, enzyme_dup, x, g); }
static void tables(const double *x) {
  double h[N][N];
  other.count = 0;
  for (size_t c = 0; c < N; c++)
    __enzyme_fwddiff((void *)linked_gradient,
                     enzyme_dup, x, __enzyme_todense((void *)one_load, (void *)no_store, c),
                     enzyme_dupnoneed, NULL, __enzyme_todense((void *)zero_load, (void *)triplet_store, c, &other));
  dense(&other, h);
  for (int c = 0; c < N; c++) {
    double up[N] = {0}, down[N] = {0}, y[N];
    memcpy(y, x, sizeof y);
    y[c] = x[c] + 1e-5; linked_gradient(y, up);
    y[c] = x[c] - 1e-5; linked_gradient(y, down);
    for (int r = 0; r < N; r++) near("linked", r, c, h[r][c], (up[r] - down[r]) / 2e-5);
  }
}

/* No derivative: each access is a call. */
static double sum(const double *p, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += p[2 * i];
  return s;
}
static double number_load(unsigned long byte) { return byte / 8; }
static void number_store(double value, unsigned long byte) { kept[byte / 8] = value; }
static void plain(void) {
  double *p = __enzyme_todense((void *)number_load, (void *)number_store);
  near("sum", 0, 0, sum(p, 10), 90);
  p[5] = 7;
  near("stored", 0, 0, kept[5], 7);
}

int main(void) {
  double x[N];
  for (int i = 0; i < N; i++) x[i] = sin(1.7 * i) + 0.3 * i;
  springs(x);
  periodic(x);
  jacobian(x, 1);
  jacobian(x, 0);
  backwards(x);
  wide(x);
  tables(x);
  plain();
  if (!bad) puts("all right");
  return bad;
}
