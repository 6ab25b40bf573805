#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* whether memory has a derivative is said when the program runs: where it has none, its shadow is itself */
int enzyme_runtime_activity, enzyme_const, enzyme_dup, enzyme_width;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct two { double a, b; };
struct two __enzyme_fwddiff_two(void *, ...);
struct model { double *w; const double *data; double *out; int n; };
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
static double run(struct model *m) {
  double t[4], *u = malloc(sizeof t), s = 0;
  memcpy(t, m->data, sizeof t); memcpy(u, m->w, sizeof t);
  for (int i = 0; i < m->n; i++) { m->out[i] = t[i] * u[i] * u[i]; s += m->out[i] * m->data[i]; }
  memset(t, 0, sizeof t); memcpy(m->out, t, sizeof *t);
  free(u);
  return s;
}
static double pick(const double *x, const double *y, int which, double scale) { const double *p = which ? x : y; return p[0] * p[1] * scale; }
int main(void) {
  double w[4] = {1, 2, 3, 4}, data[4] = {0.5, -1, 2, 3}, out[4] = {0}, dw[4] = {0}, dout[4] = {0}, ddata[4] = {0};
  struct model m = {w, data, out, 4}, d = {dw, data, dout, 4};
  __enzyme_autodiff((void *)run, enzyme_runtime_activity, &m, &d);
  for (int i = 0; i < 4; i++) { near("w", dw[i], 2 * w[i] * data[i] * data[i]); near("data stays", data[i], (double[]){0.5, -1, 2, 3}[i]); }
  near("out", out[3], 3 * 16); near("out", out[0], 0);
  d = (struct model){w, ddata, dout, 4}; memset(dout, 0, sizeof dout);
  __enzyme_autodiff((void *)run, enzyme_runtime_activity, &m, &d);
  for (int i = 0; i < 4; i++) { near("data", ddata[i], 2 * w[i] * w[i] * data[i]); near("w stays", w[i], i + 1); }
  double tw[4] = {1, 1, 0, 0}; memset(dout, 0, sizeof dout);
  d = (struct model){tw, data, dout, 4};
  near("forward", __enzyme_fwddiff((void *)run, enzyme_runtime_activity, &m, &d), 2 * 1 * 0.25 + 2 * 2 * 1);
  near("forward out", dout[1], 2 * 2 * -1); near("forward out", dout[0], 0);
  d = (struct model){tw, data, out, 4};
  __enzyme_fwddiff((void *)run, enzyme_runtime_activity, &m, &d); near("out is its own shadow", out[3], 48);
  double x[2] = {3, 4}, y[2] = {5, 6}, dx[2] = {0};
  for (int which = 0; which < 2; which++) __enzyme_autodiff((void *)pick, enzyme_runtime_activity, x, dx, enzyme_const, y, which, enzyme_const, 2.0);
  near("pick", dx[0], 8); near("pick", dx[1], 6); near("y stays", y[0] + y[1], 11);
  double e[2][2] = {{1, 0}, {0, 1}};
  struct two t = __enzyme_fwddiff_two((void *)pick, enzyme_runtime_activity, enzyme_width, 2, x, e[0], e[1], y, y, e[1], 1, enzyme_const, 2.0);
  near("width", t.a, 8); near("width", t.b, 6);
  t = __enzyme_fwddiff_two((void *)pick, enzyme_runtime_activity, enzyme_width, 2, x, e[0], e[1], y, y, e[1], 0, enzyme_const, 2.0);
  near("width", t.a, 0); near("width", t.b, 10);
  if (!bad) puts("all right");
  return bad;
}
