#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// functions that variables of the program hold since before the derivative is called
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed;
typedef double (*hook)(double);
static hook the, other, table[3];
static double state;
static double summed(double v) { state += v * v; return state; }
static double seven(double v) { return v * 7; }
static double cube(double v) { return v * v * v; }
double one(const double *x, int n) { return the(x[0]) * 3 + the(x[1]) * x[n - 1]; }
double maybe_null(const double *x, int n) { return the ? the(x[2]) * n : x[0]; }
double set_here(const double *x, int n) {
  if (x[0] < 0) the = seven;
  return the(x[0]) * x[n - 2];
}
double swapped(const double *x, int n) {
  state = 0;
  hook was = the;
  the = other;
  double s = 0;
  for (int i = 0; i < n; i++) s += the(x[i]) * table[i % 3](x[i]);
  the = was;
  return s;
}
static struct operation { const char *name; hook fn; double k; } operations[4];
static int used;
double registry(const double *x, int n) {
  state = 0;
  double s = 0;
  for (int i = 0; i < used; i++) s += operations[i].k * operations[i].fn(x[n - 1 - i]);
  return s;
}
static struct node { hook fn; struct node *next; } *chain;
double chained(const double *x, int n) {
  state = 1;
  double v = x[0];
  for (struct node *p = chain; p; p = p->next) v = p->fn(v) + x[n - 1];
  return v;
}
typedef struct object { double (*eval)(struct object *, double); double a; } object;
static object *current;
static double evaluated(object *o, double v) { return o->a * v * v; }
double method(const double *x, int n) { return current->eval(current, x[0]) * x[n - 3]; }

static void check(const char *name, double (*f)(const double *, int), const double *got, const double *tangent) {
  for (int i = 0; i < 4; i++) {
    double x[4] = {1.7, 0.3, 2.2, 1.1}, h = 1e-6;
    x[i] += h;
    double high = f(x, 4);
    x[i] -= 2 * h;
    double want = (high - f(x, 4)) / (2 * h);
    if (!(fabs(got[i] - want) <= 1e-6 * (1 + fabs(want)) && fabs(got[i] - tangent[i]) <= 1e-12 * (1 + fabs(got[i]))))
      printf("%s[%d]: reverse %g, forward %g, not %g\n", name, i, got[i], tangent[i], want), failed = 1;
  }
}
#define CHECK(f) do { \
  double x[4] = {1.7, 0.3, 2.2, 1.1}, d[4] = {0}, t[4]; \
  __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 4); \
  for (int i = 0; i < 4; i++) { \
    double e[4] = {0}; \
    e[i] = 1; \
    t[i] = __enzyme_fwddiff((void *)f, enzyme_dup, x, e, enzyme_const, 4); \
  } \
  check(#f, f, d, t); } while (0)

int main(int argc, char **argv) {
  other = summed;
  table[0] = summed, table[1] = seven, table[2] = cube;
  operations[used++] = (struct operation){"cube", cube, 2};
  operations[used++] = (struct operation){"summed", summed, 3};
  for (int i = 0; i < 3; i++) {
    struct node *p = malloc(sizeof *p);
    *p = (struct node){table[i], chain};
    chain = p;
  }
  current = malloc(sizeof *current);
  *current = (object){evaluated, 3};
  the = NULL;
  CHECK(maybe_null);
  for (int k = 0; k < 2; k++) {
    the = argc + k > 1 ? seven : cube;
    CHECK(one); CHECK(maybe_null); CHECK(set_here); CHECK(swapped); CHECK(registry); CHECK(chained); CHECK(method);
  }
  if (!failed) puts("all right");
  return failed;
}
