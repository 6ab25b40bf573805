/* an extended Kalman filter for navigation: matrices in a workspace arena, error codes, function table of sensors */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#define NX 4
enum status { OK = 0, ERR_DIM = -1, ERR_SINGULAR = -2, ERR_MEM = -3 };
typedef struct matrix { int rows, cols, stride; unsigned flags; double *data; } matrix;
typedef struct arena { uint8_t *base; size_t cap, top, high; int nblocks; } arena;
static void *arena_get(arena *a, size_t bytes) {
  size_t need = (bytes + 31u) & ~(size_t)31u;
  if (a->top + need > a->cap) return NULL;
  void *p = a->base + a->top; a->top += need; a->nblocks++;
  if (a->top > a->high) a->high = a->top;
  return p;
}
static int mat_new(arena *a, matrix *m, int r, int c) {
  m->rows = r; m->cols = c; m->stride = c; m->flags = 0;
  m->data = arena_get(a, sizeof(double) * (size_t)r * c);
  if (!m->data) return ERR_MEM;
  memset(m->data, 0, sizeof(double) * (size_t)r * c);
  return OK;
}
#define M(m, i, j) ((m)->data[(i) * (m)->stride + (j)])
static int mat_mul(const matrix *a, const matrix *b, matrix *c) {
  if (a->cols != b->rows || c->rows != a->rows || c->cols != b->cols) return ERR_DIM;
  for (int i = 0; i < a->rows; i++) for (int j = 0; j < b->cols; j++) {
    double s = 0; for (int k = 0; k < a->cols; k++) s += M(a, i, k) * M(b, k, j);
    M(c, i, j) = s;
  }
  return OK;
}
static int mat_mult(const matrix *a, const matrix *b, matrix *c) {
  if (a->cols != b->cols || c->rows != a->rows || c->cols != b->rows) return ERR_DIM;
  for (int i = 0; i < a->rows; i++) for (int j = 0; j < b->rows; j++) {
    double s = 0; for (int k = 0; k < a->cols; k++) s += M(a, i, k) * M(b, j, k);
    M(c, i, j) = s;
  }
  return OK;
}
static int mat_inv(arena *ar, const matrix *a, matrix *inv) {
  size_t mark = ar->top; int n = a->rows; matrix w; int st;
  if ((st = mat_new(ar, &w, n, 2 * n))) return st;
  for (int i = 0; i < n; i++) { memcpy(&M(&w, i, 0), &M(a, i, 0), n * sizeof(double)); M(&w, i, n + i) = 1; }
  for (int k = 0; k < n; k++) {
    int p = k; for (int i = k + 1; i < n; i++) if (fabs(M(&w, i, k)) > fabs(M(&w, p, k))) p = i;
    if (fabs(M(&w, p, k)) < 1e-300) { st = ERR_SINGULAR; goto out; }
    if (p != k) for (int j = 0; j < 2 * n; j++) { double t = M(&w, k, j); M(&w, k, j) = M(&w, p, j); M(&w, p, j) = t; }
    double d = 1 / M(&w, k, k);
    for (int j = 0; j < 2 * n; j++) M(&w, k, j) *= d;
    for (int i = 0; i < n; i++) if (i != k) { double f = M(&w, i, k); for (int j = 0; j < 2 * n; j++) M(&w, i, j) -= f * M(&w, k, j); }
  }
  for (int i = 0; i < n; i++) memcpy(&M(inv, i, 0), &M(&w, i, n), n * sizeof(double));
out:
  ar->top = mark;
  return st;
}
struct filter;
typedef int (*measure_fn)(const struct filter *, double *h, matrix *H);
typedef struct sensor { char name[12]; int dim; measure_fn h; double noise[2]; } sensor;
typedef struct filter {
  matrix x, P, Q; int step; sensor *sensors; int nsensors; arena *mem; double dt; void *user;
} filter;
static int gps(const filter *f, double *h, matrix *H) {
  for (int i = 0; i < 2; i++) { h[i] = M(&f->x, i, 0); M(H, i, i) = 1; }
  return 2;
}
static int radar(const filter *f, double *h, matrix *H) {
  double px = M(&f->x, 0, 0) + 3, py = M(&f->x, 1, 0) - 2, r = sqrt(px * px + py * py);
  h[0] = r; M(H, 0, 0) = px / r; M(H, 0, 1) = py / r;
  return 1;
}
static int predict(filter *f) {
  size_t mark = f->mem->top; matrix F, T, x2, P2; int st = 0;
  st |= mat_new(f->mem, &F, NX, NX); st |= mat_new(f->mem, &T, NX, NX);
  st |= mat_new(f->mem, &x2, NX, 1); st |= mat_new(f->mem, &P2, NX, NX);
  if (st) return ERR_MEM;
  for (int i = 0; i < NX; i++) M(&F, i, i) = 1;
  M(&F, 0, 2) = f->dt; M(&F, 1, 3) = f->dt; M(&F, 2, 0) = -0.1 * f->dt * cos(M(&f->x, 0, 0));
  mat_mul(&F, &f->x, &x2); memcpy(f->x.data, x2.data, NX * sizeof(double));
  mat_mul(&F, &f->P, &T); mat_mult(&T, &F, &P2);
  for (int i = 0; i < NX * NX; i++) f->P.data[i] = P2.data[i] + f->Q.data[i];
  f->mem->top = mark; f->step++;
  return OK;
}
static int update(filter *f, const sensor *s, const double *z) {
  size_t mark = f->mem->top; int m = s->dim, st; double h[2];
  matrix H, PH, S, Si, K, KH;
  if ((st = mat_new(f->mem, &H, m, NX)) || (st = mat_new(f->mem, &PH, NX, m)) || (st = mat_new(f->mem, &S, m, m)) ||
      (st = mat_new(f->mem, &Si, m, m)) || (st = mat_new(f->mem, &K, NX, m)) || (st = mat_new(f->mem, &KH, NX, NX))) return st;
  if (s->h(f, h, &H) != m) return ERR_DIM;
  mat_mult(&f->P, &H, &PH); mat_mul(&H, &PH, &S);
  for (int i = 0; i < m; i++) M(&S, i, i) += s->noise[i];
  if ((st = mat_inv(f->mem, &S, &Si))) return st;
  mat_mul(&PH, &Si, &K);
  for (int i = 0; i < NX; i++) for (int j = 0; j < m; j++) M(&f->x, i, 0) += M(&K, i, j) * (z[j] - h[j]);
  mat_mul(&K, &H, &KH);
  matrix P2; if ((st = mat_new(f->mem, &P2, NX, NX))) return st;
  mat_mul(&KH, &f->P, &P2);
  for (int i = 0; i < NX * NX; i++) f->P.data[i] -= P2.data[i];
  f->mem->top = mark;
  return OK;
}
double loss(const double *x, long n) {
  arena mem = { malloc(1 << 16), 1 << 16, 0, 0, 0 };
  sensor table[] = { { "gps", 2, gps, { 0.1 + x[0] * x[0], 0.2 } }, { "radar", 1, radar, { 0.05 + 0.1 * x[1], 0 } } };
  filter f = { .step = 0, .sensors = table, .nsensors = 2, .mem = &mem, .dt = 0.1 };
  if (mat_new(&mem, &f.x, NX, 1) || mat_new(&mem, &f.P, NX, NX) || mat_new(&mem, &f.Q, NX, NX)) return -1;
  for (int i = 0; i < NX; i++) { M(&f.x, i, 0) = x[i % n]; M(&f.P, i, i) = 1 + x[(i + 1) % n] * x[(i + 1) % n]; M(&f.Q, i, i) = 0.01 * (1 + x[4]); }
  double ll = 0;
  for (int t = 0; t < 12; t++) {
    int st = predict(&f);
    if (st) { free(mem.base); return st; }
    const sensor *s = &f.sensors[t % 3 == 2];
    double z[2] = { sin(0.3 * t) + 0.1 * x[5], cos(0.2 * t) };
    if (s->dim == 1) z[0] = 3.5 + 0.1 * t;
    if ((st = update(&f, s, z))) { free(mem.base); return st; }
    ll += M(&f.x, 0, 0) * M(&f.x, 0, 0) + 0.5 * M(&f.P, 2, 2) + log(M(&f.P, 0, 0));
  }
  free(mem.base);
  return ll;
}
