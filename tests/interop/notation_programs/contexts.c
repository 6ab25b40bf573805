// A stack of contexts, and a list of nodes, whose first one a variable holds: empty whenever a derivative is asked for.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

typedef struct context { double *sums; int n; struct context *before; } context;
typedef struct node { struct node *next; double value; } node;

static context *current;
static node *first;

static void begin(context *c, int n) {
  c->sums = calloc(n, sizeof(double));
  c->n = n;
  c->before = current;
  current = c;
}

static void end(void) {
  context *c = current;
  current = c->before;
  free(c->sums);
}

static void add(int i, double value) {
  if (current) current->sums[i % current->n] += value;
}

static double squares(void) {
  double s = 0;
  for (int i = 0; i < current->n; i++) s += current->sums[i] * current->sums[i];
  return s;
}

static double nested(const double *x, int n) {
  context outer;
  begin(&outer, 3);
  double s = 0;
  for (int i = 0; i < n; i++) {
    add(i, x[i]);
    context inner;
    begin(&inner, 2);
    add(i, x[i] * x[0]);
    add(i + 1, x[i]);
    s += squares();
    end();
  }
  s += squares() * x[1];
  end();
  return s;
}

static double listed(const double *x, int n) {
  for (int i = 0; i < n; i++) {
    node *added = malloc(sizeof *added);
    *added = (node){first, sin(x[i])};
    first = added;
  }
  double s = 0;
  while (first) {
    node *gone = first;
    s = s * gone->value + gone->value;
    first = gone->next;
    free(gone);
  }
  return s;
}

static void gradient_nested(const double *x, double *g) { __enzyme_autodiff((void *)nested, enzyme_dup, x, g, enzyme_const, 4); }
static void gradient_listed(const double *x, double *g) { __enzyme_autodiff((void *)listed, enzyme_dup, x, g, enzyme_const, 4); }

static int wrong;

static void agree(const char *what, double found, double wanted) {
  if (fabs(found - wanted) < 1e-6 * (1 + fabs(wanted))) return;
  printf("%s: %.12g, should be %.12g\n", what, found, wanted);
  wrong = 1;
}

static void check(double (*f)(const double *, int), void (*gradient)(const double *, double *), double forward,
                  const double *second) {
  double x[4] = {0.5, -0.3, 1.2, 0.7}, v[4] = {0.3, -0.2, 0.5, 0.1}, g[4] = {0}, up[4], down[4], above[4] = {0}, below[4] = {0};
  const double h = 1e-5;
  gradient(x, g);
  double along = 0;
  for (int i = 0; i < 4; i++) along += g[i] * v[i], up[i] = x[i] + h * v[i], down[i] = x[i] - h * v[i];
  agree("reverse", along, (f(up, 4) - f(down, 4)) / (2 * h));
  agree("forward", forward, along);
  gradient(up, above);
  gradient(down, below);
  for (int i = 0; i < 4; i++) agree("second", second[i], (above[i] - below[i]) / (2 * h));
}

int main(void) {
  double x[4] = {0.5, -0.3, 1.2, 0.7}, v[4] = {0.3, -0.2, 0.5, 0.1}, g[4] = {0}, second[4] = {0};
  __enzyme_fwddiff((void *)gradient_nested, enzyme_dup, x, v, enzyme_dup, g, second);
  check(nested, gradient_nested, __enzyme_fwddiff((void *)nested, enzyme_dup, x, v, enzyme_const, 4), second);
  for (int i = 0; i < 4; i++) g[i] = second[i] = 0;
  __enzyme_fwddiff((void *)gradient_listed, enzyme_dup, x, v, enzyme_dup, g, second);
  check(listed, gradient_listed, __enzyme_fwddiff((void *)listed, enzyme_dup, x, v, enzyme_const, 4), second);
  if (!wrong) puts("all right");
  return wrong;
}
