#include <math.h>
#include <stdint.h>
#include <stdio.h>
// cells that hold floats of one type now and other data later: what integers overwrite has no derivative any more
extern int enzyme_const, enzyme_dup, enzyme_width;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef struct { double a, b; } two;
two __enzyme_fwddiff_two(void *, ...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
typedef union { double d; float f; int64_t bits; const double *p; } Cell;
__attribute__((noinline)) static void number(Cell *c, double x, int how) {
  if (how == 0) c->d = x * x;
  else if (how == 1) c->f = (float)x * 0.5f;
  else c->bits = 0;
}
__attribute__((noinline)) static double said(const Cell *c, int how) { return how == 1 ? c->f : c->d; }
static double numbers(double x, const int *how, int n) {
  Cell c;
  double s = 0;
  for (int i = 0; i < n; i++) { number(&c, x, how[i]); s += said(&c, how[i]) * (i + 1); }
  return s;
}
__attribute__((noinline)) static void either(Cell *c, double x, const double *y, int how) {
  if (how == 0) c->d = x * x;
  else if (how == 1) c->p = y;
  else c->bits = 0;
}
__attribute__((noinline)) static double held(const Cell *c, int how) { return how == 1 ? *c->p : c->d; }
static double pointers(double x, const int *how, int n) {
  Cell c;
  double s = 0, y = x * 3;
  for (int i = 0; i < n; i++) { either(&c, x, &y, how[i]); s += held(&c, how[i]) * (i + 1); }
  return s;
}
/* a caller's union that functions of their own use as a number, then as a pointer */
__attribute__((noinline)) static void set_number(Cell *c, double x) { c->d = x * x; }
__attribute__((noinline)) static double its_number(const Cell *c) { return c->d * 2; }
__attribute__((noinline)) static void pointer(Cell *c, double *y) { c->p = y; }
__attribute__((noinline)) static double its_pointer(const Cell *c) { return *c->p * 3; }
static double reused(Cell *c, double *x) {
  set_number(c, x[0]);
  double s = its_number(c);
  pointer(c, x + 1);
  return s + its_pointer(c);
}
int main(void) {
  int how[] = {0, 2, 1, 0, 2, 2, 0, 2, 1}, n = 9;
  double x = 1.5, want = 2 * x * (1 + 4 + 7) + 0.5 * (3 + 9);
  near("numbers", __enzyme_autodiff((void *)numbers, x, enzyme_const, how, n), want);
  near("numbers forward", __enzyme_fwddiff((void *)numbers, x, 1.0, enzyme_const, how, n), want);
  two lanes = __enzyme_fwddiff_two((void *)numbers, enzyme_width, 2, x, 1.0, -3.0, enzyme_const, how, n);
  near("numbers, two lanes", lanes.a, want);
  near("numbers, two lanes", lanes.b, -3 * want);
#ifdef __OPTIMIZE__  // at -O0 both members are one integer, which is refused
  want = 2 * x * (1 + 4 + 7) + 3 * (3 + 9);
  near("pointers", __enzyme_autodiff((void *)pointers, x, enzyme_const, how, n), want);
  near("pointers forward", __enzyme_fwddiff((void *)pointers, x, 1.0, enzyme_const, how, n), want);
#endif
  Cell c = {0}, dc = {0};
  double z[2] = {3, 5}, dz[2] = {0};
  __enzyme_autodiff((void *)reused, enzyme_dup, &c, &dc, enzyme_dup, z, dz);
  near("reused", dz[0], 12);
  near("reused", dz[1], 3);
  if (!bad) puts("all right");
  return bad;
}
