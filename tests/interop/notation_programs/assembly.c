#include <stdio.h>
double __enzyme_autodiff(void *, double);
double __enzyme_fwddiff(void *, double, double);
static int failed = 0;

/* what keeps an optimiser from looking: a value, an address, memory */
static double opaque(double v) { __asm__ volatile("" : "+x"(v)); return v; }
static void escape(double *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
static void use(double v) { __asm__ volatile("" : : "x"(v)); }
static void touch(double *p) { __asm__ volatile("" : "+m"(*p) : : "memory"); }
double hidden(double x) {
  double y = x * x;
  escape(&y); touch(&y); use(y);
  return opaque(y) * x;
}
/* inactive: counts cycles */
static unsigned long ticks(void) {
  unsigned low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
  return ((unsigned long)high << 32) | low;
}
static unsigned long total = 0;
double timed(double x) {
  unsigned long t = ticks();
  double y = x * x;
  total += ticks() - t;
  return y * x;
}
__attribute__((annotate("enzyme_inactive"))) static double twice(double v) { __asm__("addsd %0, %0" : "+x"(v)); return v; }
double scaled(double x) { return twice(x) * x * x; }

static void check(const char *name, double got, double want) {
  if (got != want) printf("%s: %g, not %g\n", name, got, want), failed = 1;
}
int main(void) {
  check("hidden", __enzyme_autodiff((void *)hidden, 3.0), 27), check("tangent", __enzyme_fwddiff((void *)hidden, 3.0, 1), 27);
  check("timed", __enzyme_autodiff((void *)timed, 3.0), 27), check("tangent", __enzyme_fwddiff((void *)timed, 3.0, 1), 27);
  check("scaled", __enzyme_autodiff((void *)scaled, 3.0), 36), check("tangent", __enzyme_fwddiff((void *)scaled, 3.0, 1), 36);
  if (!failed) puts("all right");
  return failed;
}
