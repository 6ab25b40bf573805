/* Functions in variables of the program, which change while it runs; structs by value through them. */
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

typedef struct { double a, b, c; int k; } terms;
typedef double (*step)(terms, double);
static double add(terms t, double v) { t.a += v; return t.a * t.b + t.k; }
static double scale(terms t, double v) { return t.c * v; }
static double bend(terms t, double v) { return sin(t.a * v) + t.c; }
step table[2] = {add, scale};
struct { const char *name; double (*value)(double); } unit = {"square", 0};
static double square(double v) { return v * v; }

double f(const double *x, long n) {
  double v = 1;
  for (long i = 0; i + 2 < n; i++) {
    terms t = {x[i], x[i + 1], x[i + 2], (int)i};
    v = table[i & 1](t, v) + t.a;
  }
  return unit.value(v);
}

static int check(void) {
  double x[5] = {0.5, 1.2, 0.7, 0.3, 0.9}, g[5] = {0};
  int bad = 0;
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, 5L);
  for (int i = 0; i < 5; i++) {
    double h = 1e-6, y[5], z[5], d[5] = {0};
    for (int k = 0; k < 5; k++) y[k] = x[k] + (k == i) * h, z[k] = x[k] - (k == i) * h;
    d[i] = 1;
    bad += !(fabs((f(y, 5) - f(z, 5)) / (2 * h) - g[i]) < 1e-7);
    bad += !(fabs(__enzyme_fwddiff((void *)f, enzyme_dup, x, d, enzyme_const, 5L) - g[i]) < 1e-12);
  }
  return bad;
}

int main(void) {
  unit.value = square;
  int bad = check();
  table[1] = bend;
  bad += check();
  printf(bad ? "wrong\n" : "all right\n");
  return bad;
}
