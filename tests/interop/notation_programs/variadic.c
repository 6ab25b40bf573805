#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// functions with variable arguments: numbers, structs, pointers; lists that are copied and handed on
extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int bad;
static void near(const char *what, double got, double want, double eps) {
  if (!(fabs(got - want) <= eps * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
__attribute__((noinline)) static double weighted(int count, ...) {  // more of them than there are registers
  va_list rest;
  va_start(rest, count);
  double s = 0;
  for (int i = 0; i < count; i++) { const double v = va_arg(rest, double); s += v * v * (i + 1); }
  va_end(rest);
  return s;
}
static double sums(double x, double y) { return weighted(3, x, x * y, 2.0) * y + weighted(10, x, y, x, y, x, y, x, y, x, x * y); }
__attribute__((noinline)) static double listed(const char *kinds, va_list rest) {
  double s = 1;
  for (; *kinds; kinds++) {
    if (*kinds == 'd') s *= va_arg(rest, double);
    else if (*kinds == 'i') s *= va_arg(rest, int);
    else s += (double)va_arg(rest, long double);
  }
  return s;
}
static double twice(const char *kinds, ...) {
  va_list rest, again;
  va_start(rest, kinds);
  va_copy(again, rest);
  const double s = listed(kinds, rest);
  const double t = va_arg(again, double);
  va_end(rest);
  va_end(again);
  return s * t;
}
static double mixed(double x, double y) { return twice("didLd", x, 3, y, (long double)(x * y), sin(y)); }
typedef struct { double a, b; } Pair;
typedef struct { double a, b, c; int n; } Large;
typedef struct { float a; int n; } Small;
__attribute__((noinline)) static double structs(int count, ...) {
  va_list rest;
  va_start(rest, count);
  const Pair p = va_arg(rest, Pair);
  const Large l = va_arg(rest, Large);
  const Small s = va_arg(rest, Small);
  double *out = va_arg(rest, double *);
  va_end(rest);
  *out = p.a * l.c;
  return p.a * p.b + l.a * l.b * l.n + s.a * s.n + count;
}
static double members(double x, double y) {
  double z = 0;
  const double s = structs(4, (Pair){x, y}, (Large){x * x, y, x * y, 3}, (Small){0.5f, 2}, &z);
  return s + z * y;
}
static void told(char *to, const char *how, ...) {
  va_list rest;
  va_start(rest, how);
  vsnprintf(to, 32, how, rest);
  va_end(rest);
}
static double logged(double x, double y) { char text[32]; told(text, "%g and %d", 2.5, 3); return x * y * strlen(text); }
static double recursive(int count, double x, ...) {
  va_list rest;
  va_start(rest, x);
  const double y = va_arg(rest, double);
  va_end(rest);
  return count ? recursive(count - 1, x * y, y) : x;
}
static double powers(double x, double y) { return recursive(3, x, y); }
static void check(const char *what, double (*f)(double, double), double dx, double dy, double fx, double fy) {
  const double x = 1.3, y = 0.7, h = 1e-6;
  near(what, dx, (f(x + h, y) - f(x - h, y)) / (2 * h), 1e-8);
  near(what, dy, (f(x, y + h) - f(x, y - h)) / (2 * h), 1e-8);
  near(what, fx, dx, 1e-12);
  near(what, fy, dy, 1e-12);
}
#define CHECK(f) check(#f, f, __enzyme_autodiff((void *)f, 1.3, enzyme_const, 0.7), __enzyme_autodiff((void *)f, enzyme_const, 1.3, 0.7), \
                       __enzyme_fwddiff((void *)f, 1.3, 1., 0.7, 0.), __enzyme_fwddiff((void *)f, 1.3, 0., 0.7, 1.))
int main(void) {
  CHECK(sums);
  CHECK(mixed);
  CHECK(members);
  CHECK(logged);
  CHECK(powers);
  if (!bad) puts("all right");
  return bad;
}
