#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* memory that the differentiated function allocates and hands out: its shadow goes with it */
void __enzyme_fwddiff(void *, ...);
struct pair { double *value, *tangent; };
struct pair __enzyme_fwddiff_pair(void *, ...);
int enzyme_primal_return;
struct box { double *p; int n; };
static int bad;
static void near(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) { printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
static void fill(struct box *b, const double *x) {
  b->n = 2; b->p = malloc(2 * sizeof(double));
  b->p[0] = x[0] * x[1]; b->p[1] = x[0];
}
static void more(struct box *b) {
  double *q = malloc((b->n + 1) * sizeof *q);
  for (int i = 0; i < b->n; i++) q[i] = b->p[i] * b->p[i];
  q[b->n] = 1; free(b->p); b->p = q; b->n++;
}
static void copied(struct box *to, const struct box *from) { struct box b = *from; more(&b); memcpy(to, &b, sizeof b); }
static double *product(const double *x) { double *r = malloc(sizeof *r); *r = x[0] * x[1]; return r; }
int main(void) {
  double x[2] = {3, 4}, dx[2] = {1, 0};
  struct box b = {0, 0}, db = {0, 0}, c = {0, 0}, dc = {0, 0};
  __enzyme_fwddiff((void *)fill, &b, &db, x, dx);
  near("fill", db.p[0], 4); near("fill", db.p[1], 1);
  __enzyme_fwddiff((void *)copied, &c, &dc, &b, &db);
  near("copied", dc.p[0], 2 * 12 * 4); near("copied", dc.p[1], 2 * 3); near("copied", dc.p[2], 0);
  __enzyme_fwddiff((void *)more, &c, &dc);
  near("more", dc.p[0], 2 * 144 * 96); near("n", c.n, 4);
  struct pair r = __enzyme_fwddiff_pair((void *)product, enzyme_primal_return, x, dx);
  near("value", *r.value, 12); near("tangent", *r.tangent, 4);
  if (!bad) puts("all right");
  return bad;
}
