#include <math.h>
#include <stdio.h>
/* structs by value, in arguments and results; shadows behind all values; a value by its address */
struct p2 { double x, y; };
struct p3 { double x, y, z; };
struct f2 { float x, y; };
struct tag { double x; int n; };
struct two { double a, b; };
int enzyme_const, enzyme_dup, enzyme_out, enzyme_primal_return, enzyme_interleave, enzyme_byref, enzyme_width, enzyme_dup_return, enzyme_active_return;
double __enzyme_fwddiff(void *, ...);
struct p2 __enzyme_fwddiff_p2(void *, ...);
struct p3 __enzyme_fwddiff_p3(void *, ...);
struct f2 __enzyme_fwddiff_f2(void *, ...);
struct p2 __enzyme_autodiff_p2(void *, ...);
struct f2 __enzyme_autodiff_f2(void *, ...);
double __enzyme_autodiff(void *, ...);
struct pv { struct p2 v, d; };
struct pv __enzyme_fwddiff_pv(void *, ...);
static int bad;
static void near(const char *w, double a, double b) { if (!(fabs(a - b) < 1e-6 * (1 + fabs(b)))) { printf("%s %.15g %.15g\n", w, a, b); bad = 1; } }
static double dot(struct p2 p, double s) { return p.x * p.x * s + p.y; }
static float dotf(struct f2 p) { return p.x * p.x + p.y * 3; }
static double tagged(struct tag t) { return t.x * t.n; }
struct kf { int k; float f; };
static double counted(struct kf v) { return (double)v.k * v.f * v.f; }
static double big(struct p3 p) { return p.x * p.y * p.z; }
static struct p2 both(double x) { struct p2 r = {x * x, sin(x)}; return r; }
static struct f2 bothf(float x) { struct f2 r = {x * x, 2 * x}; return r; }
static struct p3 large(double x, struct p3 p) { struct p3 r = {x * p.x, x * x, 3}; return r; }
static double inter(double *x, double *y, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * y[i]; return s; }
int main(void) {
  struct p2 p = {3, 4}, dp = {1, 2};
  near("fwd struct", __enzyme_fwddiff((void *)dot, enzyme_dup, p, dp, 2.0, 1.0), 2 * 3 * 2 + 2 + 9);
  near("fwd struct default", __enzyme_fwddiff((void *)dot, p, dp, enzyme_const, 2.0), 2 * 3 * 2 + 2);
  struct p2 g = __enzyme_autodiff_p2((void *)dot, p, enzyme_const, 2.0);
  near("rev struct x", g.x, 12); near("rev struct y", g.y, 1);
  struct f2 q = {3, 4}, dq = {1, 2};
  near("fwd f2", __enzyme_fwddiff((void *)tagged, enzyme_dup, (struct tag){2, 3}, (struct tag){1, 0}), 3);
  near("rev tag", __enzyme_autodiff((void *)tagged, (struct tag){2, 3}), 3);
  near("number beside float", __enzyme_fwddiff((void *)counted, (struct kf){3, 5}, (struct kf){0, 2}), 60);
  struct f2 gf = __enzyme_autodiff_f2((void *)dotf, q);
  near("rev f2", gf.x, 6); near("rev f2", gf.y, 3);
  struct p3 b = {1, 2, 3}, db = {1, 0, 0};
  near("fwd big", __enzyme_fwddiff((void *)big, b, db), 6);
  g = __enzyme_fwddiff_p2((void *)both, 3.0, 1.0); near("struct result", g.x, 6); near("struct result", g.y, cos(3));
  struct pv pv = __enzyme_fwddiff_pv((void *)both, enzyme_primal_return, 3.0, 1.0); near("pv", pv.v.x, 9); near("pv", pv.d.y, cos(3));
  struct f2 rf = __enzyme_fwddiff_f2((void *)bothf, 3.0f, 1.0f); near("f2 result", rf.x, 6); near("f2 result", rf.y, 2);
  struct p3 l = __enzyme_fwddiff_p3((void *)large, 3.0, 1.0, b, db); near("large", l.x, 3 + 1); near("large", l.y, 6); near("large", l.z, 0);
  near("struct reverse", __enzyme_autodiff((void *)both, 3.0), 6 + cos(3));
  double x[2] = {1, 2}, y[2] = {3, 4}, dx[2] = {0}, dy[2] = {0};
  __enzyme_autodiff((void *)inter, x, y, enzyme_const, 2, enzyme_interleave, dx, dy);
  near("interleave", dx[1], 4); near("interleave", dy[0], 1);
  double v = 3, s = 2;
  near("byref", __enzyme_fwddiff((void *)dot, enzyme_const, p, enzyme_byref, sizeof(double), &s, 1.0), 9);
  if (!bad) puts("all right");
  return bad;
}
