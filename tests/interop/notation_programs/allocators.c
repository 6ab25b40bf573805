#include <stdio.h>
#include <stdlib.h>
double __enzyme_autodiff(void *, ...);
struct allocator { void *(*get)(size_t); void *(*resize)(void *, size_t); void (*put)(void *); };
static struct allocator standard = {malloc, realloc, free};
const struct allocator fixed = {malloc, realloc, free};
static double work(const struct allocator *a, const double *x, int n) {
  double *t = a->get(n * sizeof *t), s = 0;
  for (int i = 0; i < n; i++) t[i] = x[i] * x[i];
  t = a->resize(t, 2 * n * sizeof *t);
  for (int i = 0; i < n; i++) t[n + i] = t[i] * x[i];
  for (int i = 0; i < 2 * n; i++) s += t[i];
  a->put(t);
  return s;
}
double f(const double *x, int n) { return work(&standard, x, n); }
double g(const double *x, int n) { return work(&fixed, x, n); }
double h(const double *x, int n, struct allocator *a) { return work(a, x, n); }
extern int enzyme_const, enzyme_dup;
int main(void) {
  double x[2] = {2, 3}, d[2] = {0}, e[2] = {0}, k[2] = {0};
  __enzyme_autodiff((void *)f, x, d, 2);
  __enzyme_autodiff((void *)g, x, e, 2);
  __enzyme_autodiff((void *)h, enzyme_dup, x, k, enzyme_const, 2, enzyme_const, &standard);
  int ok = d[0] == 16 && d[1] == 33 && e[0] == 16 && e[1] == 33 && k[0] == 16 && k[1] == 33;
  if (ok) puts("all right"); else printf("%g %g %g %g %g %g\n", d[0], d[1], e[0], e[1], k[0], k[1]);
  return !ok;
}
