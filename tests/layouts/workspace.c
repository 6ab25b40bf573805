/* The workspace of a solver: a struct with arrays in the middle, ints behind, handed on as void *. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct { double t, h, y[16], k[4][16]; int n, steps, failed[3]; double error; } work;
typedef void (*rhs)(void *, double, const double *, double *);
static void spring(void *p, double t, const double *y, double *dy) {
  const double *c = p;
  dy[0] = y[1]; dy[1] = -c[0] * y[0] - c[1] * y[1] + c[2] * sin(t);
}
static void step(work *w, rhs f, void *p) {
  double z[16];
  f(p, w->t, w->y, w->k[0]);
  for (int i = 0; i < w->n; i++) z[i] = w->y[i] + w->h / 2 * w->k[0][i];
  f(p, w->t + w->h / 2, z, w->k[1]);
  for (int i = 0; i < w->n; i++) { double d = w->k[1][i] - w->k[0][i]; w->error += d * d; w->y[i] += w->h * w->k[1][i]; }
  w->t += w->h; w->steps++;
  if (w->error > 1e9) w->failed[w->steps % 3]++;
}
double loss(const double *x, long n) {
  work *w = calloc(1, sizeof *w);
  double c[3] = {x[0], x[1], x[2 % n]};
  w->n = 2; w->h = 0.05; memcpy(w->y, x, 2 * sizeof(double));
  while (w->steps < 20) step(w, spring, c);
  double s = w->y[0] * w->y[1] + 0.01 * w->error + w->failed[0];
  free(w);
  return s;
}
