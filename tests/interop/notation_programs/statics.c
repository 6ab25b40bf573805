#include <math.h>
#include <stdio.h>
#include <string.h>
// static structs of floats and integers: workspace of the functions that are differentiated
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static int bad;
static void near(const char *what, double got, double want, double eps) {
  if (!(fabs(got - want) <= eps * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
typedef struct { int count; double scale; char name[8]; long calls; double small[3]; float low; } Workspace;
static Workspace space = {0, 1.0, "space", 0, {1, 2, 3}, 0};
static double gain = 2;
__attribute__((noinline)) static void fill(double x) {
  space.scale = x * x * gain;
  space.low = (float)space.count;
  for (int i = 0; i < space.count; i++) space.small[i] = sin(x * i);
  space.calls++;
}
static double f(double x) {
  fill(x);
  double s = 0;
  for (int i = 0; i < space.count; i++) s += space.small[i] * space.scale + space.name[0];
  return s * space.low;
}
static struct { unsigned n; double v[4]; } history;
static double g(double x) {  // a factor that an earlier call left there is a constant
  history.v[history.n % 4] = x * history.v[(history.n + 3) % 4];
  history.n++;
  double s = 0;
  for (int i = 0; i < 4; i++) s += history.v[i] * history.v[i];
  return s;
}
int main(void) {
  const double x = 1.3, h = 1e-6;
  for (space.count = 2; space.count < 4; space.count++) {
    const double want = (f(x + h) - f(x - h)) / (2 * h);
    const long before = space.calls;
    near("f", __enzyme_autodiff((void *)f, x), want, 1e-8);
    near("f forward", __enzyme_fwddiff((void *)f, x, 1.0), want, 1e-8);
    near("calls", space.calls - before, 2, 0);
  }
  history.n = 1;
  history.v[0] = 0.5;
  near("g", __enzyme_autodiff((void *)g, x), 2 * x * 0.25, 1e-12);
  near("n", history.n, 2, 0);
  near("g forward", __enzyme_fwddiff((void *)g, x, 1.0), 2 * x * 0.65 * 0.65, 1e-12);
  near("v", history.v[2], 0.65 * 1.3, 1e-12);
  if (!bad) puts("all right");
  return bad;
}
