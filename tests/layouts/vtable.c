/* Classes by hand: tables of functions, structs that begin with their base. */
#include <math.h>
#include <stdlib.h>
typedef struct shape shape;
typedef struct {
  double (*area)(const shape *);
  void (*scale)(shape *, double);
  void (*drop)(shape *);
} vt;
struct shape {
  const vt *v;
  int id;
};
typedef struct {
  shape b;
  double r;
} circle;
typedef struct {
  shape b;
  float q;
  double w, h;
} rect;
static double ca(const shape *s) {
  const circle *c = (const circle *)s;
  return 3 * c->r * c->r;
}
static void cs(shape *s, double k) { ((circle *)s)->r *= k; }
static double ra(const shape *s) {
  const rect *r = (const rect *)s;
  return r->w * r->h * r->q;
}
static void rs(shape *s, double k) {
  rect *r = (rect *)s;
  r->w *= k;
  r->h += k;
}
static void dr(shape *s) { free(s); }
static const vt CV = {ca, cs, dr}, RV = {ra, rs, dr};
double loss(const double *x, long n) {
  shape **a = malloc(n * sizeof *a);
  for (long i = 0; i < n; i++) {
    if (i % 2) {
      circle *c = malloc(sizeof *c);
      c->b.v = &CV;
      c->b.id = (int)i;
      c->r = x[i];
      a[i] = &c->b;
    } else {
      rect *r = malloc(sizeof *r);
      r->b.v = &RV;
      r->b.id = (int)i;
      r->q = 0.5f;
      r->w = x[i];
      r->h = x[0];
      a[i] = &r->b;
    }
  }
  double s = 0;
  for (int t = 0; t < 2; t++)
    for (long i = 0; i < n; i++) {
      a[i]->v->scale(a[i], x[(i + 1) % n]);
      s += a[i]->v->area(a[i]) * (a[i]->id + 1);
    }
  for (long i = 0; i < n; i++) a[i]->v->drop(a[i]);
  free(a);
  return s;
}
