/* A Runge-Kutta solver of everyday make: stages in a table of pointers in the middle of a struct, a triangle of
   coefficients, a right-hand side behind a function pointer with `void *data` that counts its calls. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int (*rhs)(double t, const double *y, double *dy, void *data);
typedef struct {
  int n;
  double *k[7], *tmp, *buf;
  double h;
  long steps;
  rhs f;
  void *data;
} solver;

static const double A[7][6] = {
    {0},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
static const double C[7] = {0, .2, .3, .8, 8. / 9, 1, 1};

static solver *create(int n, rhs f, void *data) {
  solver *s = malloc(sizeof *s);
  memset(s, 0, sizeof *s);
  s->n = n;
  s->buf = malloc(8 * n * sizeof(double));
  for (int i = 0; i < 7; i++) s->k[i] = s->buf + i * n;
  s->tmp = s->buf + 7 * n;
  s->h = 0.1;
  s->f = f;
  s->data = data;
  return s;
}

static int integrate(solver *s, double t, double end, double *y) {
  if (s->f(t, y, s->k[0], s->data)) return 1;
  while (t < end) {
    double h = s->h;
    if (t + h > end) h = end - t;
    for (int i = 1; i < 7; i++) {
      memcpy(s->tmp, y, s->n * sizeof *y);
      for (int j = 0; j < i; j++)
        if (A[i][j] != 0)
          for (int m = 0; m < s->n; m++) s->tmp[m] += h * A[i][j] * s->k[j][m];
      if (s->f(t + C[i] * h, s->tmp, s->k[i], s->data)) return 1;
    }
    s->steps++;
    memcpy(y, s->tmp, s->n * sizeof *y);
    t += h;
    double *last = s->k[0];
    s->k[0] = s->k[6];
    s->k[6] = last;
  }
  return 0;
}

typedef struct {
  double a, b, c, d;
  int calls;
} species;

static int growth(double t, const double *y, double *dy, void *data) {
  species *p = data;
  p->calls++;
  dy[0] = p->a * y[0] - p->b * y[0] * y[1];
  dy[1] = -p->c * y[1] + p->d * y[0] * y[1] + 0.01 * sin(t);
  return 0;
}

double loss(const double *x, long n) {
  species p = {x[0], x[1], x[2], x[3], 0};
  double y[2] = {x[4], x[5]};
  solver *s = create(2, growth, &p);
  if (n < 6 || integrate(s, 0, 0.43, y)) return -1;
  double r = y[0] * y[0] + 3 * y[1] + 1e-3 * p.calls;
  free(s->buf);
  free(s);
  return r;
}
