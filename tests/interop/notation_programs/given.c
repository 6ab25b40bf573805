#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// what a function is given reaches its result by way of variables; memory beside a variable that it uses by its name
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int failed;
/* a variable is given the parameter, and another function reads there */
static const double *source;
__attribute__((noinline)) static double square(int i) { return source[i] * source[i]; }
double kept_pointer(const double *x, int n) {
  source = x;
  double s = 0;
  for (int i = 0; i < n; i++) s += square(i) * (i + 1);
  return s;
}
/* a callback and its memory, by way of variables */
struct sum { const double *x; double s; int n; };
static void (*hook)(void *);
static void *hook_data;
static void step(void *p) {
  struct sum *a = p;
  for (int i = 0; i < a->n; i++) a->s += a->x[i] * a->x[i] * (1 + a->s);
}
__attribute__((noinline)) static void subscribe(void (*f)(void *), void *p) { hook = f, hook_data = p; }
__attribute__((noinline)) static void fire(void) { hook(hook_data); }
double callback(const double *x, int n) {
  struct sum a = {x, 1, n};
  subscribe(step, &a);
  fire();
  fire();
  return a.s;
}
/* a pointer of the thread to an array of the thread */
static _Thread_local double own[4], *at;
__attribute__((noinline)) static double read_own(int i) { return at[i]; }
double thread(const double *x, int n) {
  at = own;
  for (int i = 0; i < n; i++) own[i] = x[i] * x[n - 1 - i];
  double s = 0;
  for (int i = 0; i < n; i++) s += read_own(i) * i;
  return s;
}
/* numbers of a pool that is rounded up */
typedef struct { double re, im; int tag; } number;
__attribute__((noinline)) static number *made(double re, double im) {
  static number pool[8];
  static int k;
  number *z = &pool[k++ & 7];
  *z = (number){re, im, k};
  return z;
}
static number *times(const number *a, const number *b) {
  return made(a->re * b->re - a->im * b->im, a->re * b->im + a->im * b->re);
}
double pool(const double *x, int n) {
  number *c = times(made(x[0], x[1]), made(x[1], x[0] * x[0])), *d = times(c, made(x[2], x[n - 1]));
  return d->re * d->im;
}
/* values that are computed once for each call, found by a key */
static struct { long key; double value; } table[16];
static int round_;
static double cached(long k, double v) {
  int h = (int)((k * 2654435761u) >> 3) & 15;
  if (table[h].key != k + 100 * round_) table[h].key = k + 100 * round_, table[h].value = exp(v);
  return table[h].value;
}
double caching(const double *x, int n) {
  round_++;
  double s = 0;
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < n; i++) s += cached(i, x[i]) * (r + x[(i + 1) % n]);
  return s;
}
/* a part of a variable is given, and another part is read by name */
static struct { int n; double x[4], c[4]; } both = {4, {1, 2, 3, 4}, {5, 6, 7, 8}};
double part(const double *x) {
  double s = 0;
  for (int i = 0; i < both.n; i++) s += x[i] * x[i] * both.c[i];
  return s;
}
typedef struct { double position[3], mass; int k; } body;
static body bodies[5];
static int dimensions = 3;
double member(const double *x) {
  double s = 0;
  for (int i = 0; i < dimensions; i++) for (int j = 0; j < 5; j++) s += x[i] * x[i] * bodies[j].mass;
  return s;
}
static double work[100];
double beside(const double *x) {
  double s = 0;
  for (int i = 0; i < 4; i++) work[i] = x[i] * x[i];
  for (int i = 0; i < 4; i++) s += work[i] * x[3 - i];
  return s;
}
static double *pointer = work;
double through(const double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) pointer[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += pointer[i] * x[n - 1 - i];
  return s;
}

static void near(const char *name, double got, double want, double eps) {
  if (!(fabs(got - want) <= eps * (1 + fabs(want)))) printf("%s: got %g, not %g\n", name, got, want), failed = 1;
}
#define CHECK(f) do { \
  double x[4] = {1.7, 0.3, 2.2, 1.1}, d[4] = {0}; \
  __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 4); \
  for (int i = 0; i < 4; i++) { \
    double e[4] = {0}, y[4], h = 1e-6; \
    e[i] = 1; \
    near(#f " forward", __enzyme_fwddiff((void *)f, enzyme_dup, x, e, enzyme_const, 4), d[i], 1e-12); \
    memcpy(y, x, sizeof y); \
    y[i] += h; double high = f(y, 4); y[i] -= 2 * h; \
    near(#f, d[i], (high - f(y, 4)) / (2 * h), 1e-6); \
  } } while (0)
int main(int argc, char **argv) {
  CHECK(kept_pointer); CHECK(callback); CHECK(thread); CHECK(pool); CHECK(caching); CHECK(through);
  double d[4] = {0}, m[4] = {0}, w[4] = {0};
  both.n -= argc - 1;
  both.c[argc] += argc;
  __enzyme_autodiff((void *)part, enzyme_dup, both.x, d);
  for (int i = 0; i < 4; i++) near("part", d[i], 2 * both.x[i] * both.c[i], 1e-12);
  for (int i = 0; i < 5; i++) bodies[i].mass = i, bodies[i].position[1] = 3;
  __enzyme_autodiff((void *)member, enzyme_dup, bodies[2].position, m);
  near("member", m[1], 60, 1e-12);
  for (int i = 0; i < 100; i++) work[i] = 1;
  __enzyme_autodiff((void *)beside, enzyme_dup, work + 50, w);
  for (int i = 0; i < 4; i++) near("beside", w[i], 3, 1e-12);
  if (!failed) puts("all right");
  return failed;
}
