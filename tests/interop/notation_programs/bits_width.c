#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdint.h>
/* numbers that travel in integers, in calls with several lanes: shifts, masks and signs in each lane */
extern int enzyme_width;
struct two { double a, b; };
struct two __enzyme_fwddiff(void *, ...);
struct two __enzyme_autodiff(void *, ...);
struct fi { float x; int n; };
struct fifi { float x; int n; float y; int m; };
__attribute__((noinline)) static struct fi mk(double x, int n) { struct fi r = {(float)(x*x), n}; return r; }
__attribute__((noinline)) static struct fifi mk2(double x, int n) { struct fifi r = {(float)(x*x), n, (float)x, n+1}; return r; }
static double one(double x, int n) { struct fi r = mk(x,n); return r.x * r.n; }
static double pair(double x, int n) { struct fifi r = mk2(x,n); return r.x * r.n + r.y * r.m; }
static double loop(double x, int n) { double s = 0; struct fi r = mk(x,n); for (int i = 0; i < n; i++) { struct fi q = mk(x + i, i); if (i & 1) r = q; s += r.x * (r.n + 1); } return s; }
static double absd(double x) { uint64_t u; memcpy(&u,&x,8); u &= 0x7fffffffffffffffull; memcpy(&x,&u,8); return x; }
static double mask(double x, int n) { return absd(-x * n) * x; }
static double sign(double x, int n) { return copysign(x * n, -x) * x; }
static int bad;
static void near(const char *what, double got, double want) { if (!(fabs(got - want) <= 2e-4 * (1 + fabs(want)))) { printf("%s: got %g, want %g\n", what, got, want); bad++; } }
#define CHECK(f, slope) { \
  struct two t = __enzyme_fwddiff((void *)f, enzyme_width, 2, 2.0, 1.0, 3.0, 5), r = __enzyme_autodiff((void *)f, enzyme_width, 2, 2.0, 5); \
  near(#f, t.a, slope); near(#f, t.b, 3 * slope); near(#f, r.a, slope); near(#f, r.b, slope); \
  near(#f " by differences", (f(2 + 1e-3, 5) - f(2 - 1e-3, 5)) / 2e-3, slope); }
int main(void) {
  CHECK(one, 20) CHECK(pair, 26) CHECK(loop, 128) CHECK(mask, 20) CHECK(sign, -20)
  if (!bad) puts("all right");
  return bad;
}
