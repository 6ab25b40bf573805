#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
int enzyme_dup, enzyme_const, enzyme_out, enzyme_dupnoneed;
double __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
typedef struct node { double v; struct node *next; } node;
double total(const node *n) { double s = 0; while (n) { s += n->v * n->v; n = n->next; } return s; }
double quad(double *A, double *x, int n) { double s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += x[i] * A[i * n + j] * x[j]; return s; }
void gradq(double *A, double *x, double *g, int n) { __enzyme_autodiff((void *)quad, enzyme_const, A, enzyme_dup, x, g, enzyme_const, n); }
typedef struct { int n; double *w; double bias; } layer;
double apply(const layer *l, const double *x) { double s = l->bias; for (int i = 0; i < l->n; i++) s += l->w[i] * x[i]; return tanh(s); }
static int count;
double counted(double x) { count++; return x * x; }
double table[3] = {1, 2, 3};
double lookup(double x, int i) { return table[i] * x * x; }
void copyin(double *restrict y, const double *restrict x, int n) { memcpy(y, x, n * sizeof *x); for (int i = 0; i < n; i++) y[i] *= y[i]; }
static double sq(double x) { return x * x; }
float mixed(float a, double b, int n) { return a * b * n; }
struct fd { float a; double b; };
struct fd __enzyme_autodiff_fd(void *, ...);
double grid(double g[2][3]) { double s = 0; for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) s += g[i][j] * g[i][j] * (i + 1); return s; }
static void near(const char *w, double a, double b) { if (!(fabs(a - b) < 1e-9 * (1 + fabs(b)))) { printf("%s %.15g %.15g\n", w, a, b); exit(1); } }
int main() {
  node c = {3, 0}, b = {2, &c}, a = {1, &b}, dc = {0, 0}, db = {0, &dc}, da = {0, &db};
  __enzyme_autodiff((void *)total, &a, &da);
  near("list", dc.v, 6);
  double A[4] = {1, 2, 3, 4}, x[2] = {1, 2}, dx[2] = {1, 0}, g[2] = {0}, dg[2] = {0};
  __enzyme_fwddiff((void *)gradq, enzyme_const, A, enzyme_dup, x, dx, enzyme_dup, g, dg, enzyme_const, 2);
  near("g0", g[0], 2 + 10); near("H00", dg[0], 2); near("H01", dg[1], 5);
  double w[2] = {0.1, 0.2}, dw[2] = {0};
  layer l = {2, w, 0.3}, dl = {2, dw, 0};
  __enzyme_autodiff((void *)apply, enzyme_dup, &l, &dl, enzyme_const, x);
  double t = tanh(0.3 + 0.1 + 0.4);
  near("bias", dl.bias, 1 - t * t); near("w1", dw[1], 2 * (1 - t * t));
  near("counted", __enzyme_autodiff((void *)counted, 3.0), 6);
  near("count", count, 1);
  table[1] = 10;
  near("lookup", __enzyme_autodiff((void *)lookup, 3.0, 1), 60);
  double y[2], ty[2];
  __enzyme_fwddiff((void *)copyin, y, ty, x, dx, 2);
  near("copy", ty[0], 2);
  struct fd m = __enzyme_autodiff_fd((void *)mixed, 2.0f, 3.0, 4);
  near("fd.a", m.a, 12); near("fd.b", m.b, 8);
  double gr[2][3] = {{1, 2, 3}, {4, 5, 6}}, dgr[2][3] = {0};
  __enzyme_autodiff((void *)grid, gr, dgr);
  near("grid", dgr[1][2], 24);
  puts("all right");
  return 0;
}
