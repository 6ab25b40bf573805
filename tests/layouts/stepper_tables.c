/* A library of ODE steppers in the style of large C libraries: vectors and matrices are a header (void *content, a
   table of operations, a context) and data behind it, solvers are the same with tables of their own, the integrator
   keeps all of them beside its history and a work record behind a void *, and everybody calls by way of the tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct context_ { struct logger_ *log; void *profiler; int level; } *context;
struct pair { const char *key; void *value; };
struct map { int size, most; struct pair **buckets; };
struct logger_ { FILE *errors, *notes; struct map *files; int lines; };

struct vec_ops;
struct vec_;
typedef void (*error_fn)(int, const char *, const char *, void *);
typedef struct vec_ { void *content; struct vec_ops *ops; context ctx; } *vec;
struct vec_ops {
  vec (*clone)(vec);
  void (*destroy)(vec);
  double *(*data)(vec);
  long (*length)(vec);
  void (*combine)(double, vec, double, vec, vec);
  double (*norm)(vec, vec);
  int (*sum)(int, double *, vec *, vec);
  void (*fill)(double, vec);
  void (*space)(vec, long *, long *);
};
struct vec_content { long length; int own; double *data; };

struct mat_ops;
typedef struct mat_ { void *content; struct mat_ops *ops; context ctx; } *mat;
struct mat_ops { mat (*clone)(mat); void (*destroy)(mat); void (*scale_add)(double, mat); void (*zero)(mat); };
struct mat_content { long rows, columns; double *data; long length; double **cols; };

struct lin_ops;
typedef struct lin_ { void *content; struct lin_ops *ops; context ctx; } *lin;
struct lin_ops { int (*setup)(lin, mat); int (*solve)(lin, mat, vec); void (*destroy)(lin); };
struct lin_content { long n; long *pivots; int last; };

typedef int (*sys_fn)(vec, vec, void *);
typedef int (*setup_fn)(void *);
typedef int (*solve_fn)(vec, void *);
struct nls_ops;
typedef struct nls_ { void *content; struct nls_ops *ops; context ctx; } *nls;
struct nls_ops { int (*solve)(nls, vec, vec, void *); void (*destroy)(nls); };
struct nls_content { sys_fn sys; setup_fn setup; solve_fn lsolve; vec delta; int most; long iterations; void *data; };

typedef int (*rhs_fn)(double, vec, vec, void *);
typedef int (*jac_fn)(double, vec, mat, void *);
typedef struct integrator_ {
  context ctx;
  double t, h, gamma;
  rhs_fn f;
  void *user;
  double rtol;
  vec zn[4];
  vec ewt, acor, temp, ftemp, y;
  int order, first;
  nls solver;
  int own_solver;
  int (*linit)(struct integrator_ *);
  int (*lsetup)(struct integrator_ *);
  int (*lsolve)(struct integrator_ *, vec);
  void (*lfree)(struct integrator_ *);
  void *lmem;
  double tau[8], weights[8];
  vec many[8];
  long lrw, liw, lrw1, liw1;
  error_fn errors;
  void *error_data;
  FILE *error_file;
  long steps;
} *integrator;
typedef int (*sys_mat_fn)(double, vec, vec, mat, double, void *);
struct lmem { int by_differences; jac_fn jac; void *jac_data; int own_system; sys_mat_fn system; void *system_data; lin solver; mat a, saved; vec x; long evaluations; };

static struct map *map_new(int most) {
  struct map *m = malloc(sizeof *m);
  m->size = 0; m->most = most;
  m->buckets = calloc(most, sizeof(struct pair *));
  return m;
}
static void map_put(struct map *m, const char *key, void *value) {
  struct pair *p = malloc(sizeof *p);
  p->key = key; p->value = value;
  unsigned h = 5381;
  for (const char *c = key; *c; c++) h = h * 33 + (unsigned char)*c;
  for (int i = 0; i < m->most; i++) {
    struct pair **at = &m->buckets[(h + i) % m->most];
    if (*at == NULL) { *at = p; m->size++; return; }
  }
  free(p);
}
static void map_free(struct map *m) {
  for (int i = 0; i < m->most; i++) if (m->buckets[i]) free(m->buckets[i]);
  free(m->buckets);
  free(m);
}
static vec vec_new_empty(context ctx) {
  vec v = malloc(sizeof *v);
  v->ops = calloc(1, sizeof *v->ops);
  v->content = NULL;
  v->ctx = ctx;
  return v;
}
static void vec_free_empty(vec v) { free(v->ops); free(v); }
static long serial_length(vec v) { return ((struct vec_content *)v->content)->length; }
static double *serial_data(vec v) { return ((struct vec_content *)v->content)->data; }
static void serial_destroy(vec v) {
  struct vec_content *c = v->content;
  if (c) {
    if (c->own) free(c->data);
    free(c);
  }
  vec_free_empty(v);
}
static vec serial_clone(vec w) {
  vec v = vec_new_empty(w->ctx);
  *v->ops = *w->ops;
  struct vec_content *c = malloc(sizeof *c);
  v->content = c;
  c->length = serial_length(w);
  c->own = 1;
  c->data = malloc(c->length * sizeof(double));
  return v;
}
static void serial_combine(double a, vec x, double b, vec y, vec z) {
  double *p = serial_data(x), *q = serial_data(y), *r = serial_data(z);
  for (long i = 0; i < serial_length(z); i++) r[i] = a * p[i] + b * q[i];
}
static double serial_norm(vec x, vec w) {
  double s = 0, *p = serial_data(x), *q = serial_data(w);
  for (long i = 0; i < serial_length(x); i++) s += p[i] * q[i] * p[i] * q[i];
  return sqrt(s / serial_length(x));
}
static int serial_sum(int n, double *c, vec *x, vec z) {
  if (n == 1) { z->ops->combine(c[0], x[0], 0.0, x[0], z); return 0; }
  double *r = serial_data(z);
  if (x[0] == z) {
    for (long k = 0; k < serial_length(z); k++) r[k] *= c[0];
  } else {
    double *p = serial_data(x[0]);
    for (long k = 0; k < serial_length(z); k++) r[k] = c[0] * p[k];
  }
  for (int i = 1; i < n; i++) {
    double *p = serial_data(x[i]);
    for (long k = 0; k < serial_length(z); k++) r[k] += c[i] * p[k];
  }
  return 0;
}
static void serial_fill(double c, vec z) {
  double *p = serial_data(z);
  for (long i = 0; i < serial_length(z); i++) p[i] = c;
}
static void serial_space(vec v, long *reals, long *ints) { *reals = serial_length(v); *ints = 1; }
static vec *vec_array(int n, vec w) {
  vec *all = malloc(n * sizeof(vec));
  for (int i = 0; i < n; i++) all[i] = w->ops->clone(w);
  return all;
}
static vec vec_new(long n, context ctx) {
  vec v = vec_new_empty(ctx);
  v->ops->clone = serial_clone; v->ops->destroy = serial_destroy; v->ops->data = serial_data;
  v->ops->length = serial_length; v->ops->combine = serial_combine; v->ops->norm = serial_norm;
  v->ops->sum = serial_sum; v->ops->fill = serial_fill; v->ops->space = serial_space;
  struct vec_content *c = malloc(sizeof *c);
  v->content = c;
  c->length = n; c->own = 1; c->data = malloc(n * sizeof(double));
  return v;
}

static mat mat_new(long, long, context);
static mat dense_clone(mat a) {
  struct mat_content *c = a->content;
  return mat_new(c->rows, c->columns, a->ctx);
}
static void dense_destroy(mat a) {
  struct mat_content *c = a->content;
  free(c->data); free(c->cols); free(c); free(a->ops); free(a);
}
static void dense_zero(mat a) {
  struct mat_content *c = a->content;
  for (long i = 0; i < c->length; i++) c->data[i] = 0;
}
static void dense_scale_add(double g, mat a) {
  struct mat_content *c = a->content;
  for (long j = 0; j < c->columns; j++) {
    for (long i = 0; i < c->rows; i++) c->cols[j][i] *= g;
    c->cols[j][j] += 1.0;
  }
}
static mat mat_new(long m, long n, context ctx) {
  mat a = malloc(sizeof *a);
  a->ops = calloc(1, sizeof *a->ops);
  a->ctx = ctx;
  a->ops->clone = dense_clone; a->ops->destroy = dense_destroy;
  a->ops->scale_add = dense_scale_add; a->ops->zero = dense_zero;
  struct mat_content *c = malloc(sizeof *c);
  a->content = c;
  c->rows = m; c->columns = n; c->length = m * n;
  c->data = calloc(m * n, sizeof(double));
  c->cols = malloc(n * sizeof(double *));
  for (long j = 0; j < n; j++) c->cols[j] = c->data + j * m;
  return a;
}

static int lu_setup(lin s, mat a) {
  struct lin_content *c = s->content;
  double **cols = ((struct mat_content *)a->content)->cols;
  for (long k = 0; k < c->n; k++) {
    long l = k;
    for (long i = k + 1; i < c->n; i++) if (fabs(cols[k][i]) > fabs(cols[k][l])) l = i;
    c->pivots[k] = l;
    if (cols[k][l] == 0) return c->last = (int)k + 1;
    for (long j = 0; j < c->n; j++) { double t = cols[j][l]; cols[j][l] = cols[j][k]; cols[j][k] = t; }
    for (long i = k + 1; i < c->n; i++) cols[k][i] /= cols[k][k];
    for (long j = k + 1; j < c->n; j++)
      for (long i = k + 1; i < c->n; i++) cols[j][i] -= cols[j][k] * cols[k][i];
  }
  return c->last = 0;
}
static int lu_solve(lin s, mat a, vec x) {
  struct lin_content *c = s->content;
  double **cols = ((struct mat_content *)a->content)->cols, *b = x->ops->data(x);
  for (long k = 0; k < c->n; k++) { long l = c->pivots[k]; double t = b[l]; b[l] = b[k]; b[k] = t; }
  for (long k = 0; k < c->n; k++) for (long i = k + 1; i < c->n; i++) b[i] -= cols[k][i] * b[k];
  for (long k = c->n - 1; k >= 0; k--) {
    b[k] /= cols[k][k];
    for (long i = 0; i < k; i++) b[i] -= cols[k][i] * b[k];
  }
  return 0;
}
static void lu_destroy(lin s) {
  struct lin_content *c = s->content;
  free(c->pivots); free(c); free(s->ops); free(s);
}
static lin lin_new(vec y, context ctx) {
  lin s = malloc(sizeof *s);
  s->ops = calloc(1, sizeof *s->ops);
  s->ctx = ctx;
  s->ops->setup = lu_setup; s->ops->solve = lu_solve; s->ops->destroy = lu_destroy;
  struct lin_content *c = malloc(sizeof *c);
  s->content = c;
  c->n = y->ops->length(y); c->last = 0;
  c->pivots = malloc(c->n * sizeof(long));
  return s;
}

static int newton_solve(nls s, vec y, vec w, void *mem) {
  struct nls_content *c = s->content;
  if (c->setup && c->setup(mem)) return 1;
  for (int i = 0; i < c->most; i++) {
    if (c->sys(y, c->delta, mem)) return 1;
    c->iterations++;
    c->delta->ops->combine(-1.0, c->delta, 0.0, c->delta, c->delta);
    if (c->lsolve && c->lsolve(c->delta, mem)) return 1;
    y->ops->combine(1.0, y, 1.0, c->delta, y);
    if (c->delta->ops->norm(c->delta, w) < 1e-6) return 0;
  }
  return 0;
}
static void newton_destroy(nls s) {
  struct nls_content *c = s->content;
  c->delta->ops->destroy(c->delta);
  free(c); free(s->ops); free(s);
}
static nls nls_new(vec y, context ctx) {
  nls s = malloc(sizeof *s);
  s->ops = calloc(1, sizeof *s->ops);
  s->ctx = ctx;
  s->ops->solve = newton_solve; s->ops->destroy = newton_destroy;
  struct nls_content *c = malloc(sizeof *c);
  memset(c, 0, sizeof *c);
  s->content = c;
  c->most = 12;
  c->delta = y->ops->clone(y);
  return s;
}

/* acor = y - zn[1]-like prediction; the residual of backward Euler and of BDF2 */
static int residual(vec y, vec r, void *m) {
  integrator mem = m;
  if (mem->f(mem->t, y, mem->ftemp, mem->user)) return 1;
  y->ops->combine(1.0, y, -1.0, mem->temp, r);
  r->ops->combine(1.0, r, -mem->gamma, mem->ftemp, r);
  return 0;
}
static int call_setup(void *m) { integrator mem = m; return mem->lsetup(mem); }
static int call_solve(vec x, void *m) { integrator mem = m; return mem->lsolve(mem, x); }

static void report(int code, const char *where, const char *text, void *data) {
  integrator mem = data;
  if (mem->error_file) fprintf(mem->error_file, "%s: %s (%d)\n", where, text, code);
}
static int fail(integrator mem, int code, const char *where, const char *text) {
  if (mem == NULL) { fprintf(stderr, "%s: %s\n", where, text); return code; }
  mem->errors(code, where, text, mem->error_data);
  return code;
}
static int ls_init(integrator mem) {
  struct lmem *l = mem->lmem;
  l->evaluations = 0;
  if (l->own_system) { l->system_data = mem->user; } else { l->system = NULL; l->system_data = mem; }
  return 0;
}
static int ls_solve(integrator mem, vec b) {
  struct lmem *l = mem->lmem;
  l->x->ops->combine(1.0, b, 0.0, b, l->x);
  if (l->solver->ops->solve(l->solver, l->a, l->x)) return 1;
  b->ops->combine(1.0, l->x, 0.0, l->x, b);
  return 0;
}
static int ls_system(double t, vec y, vec fy, mat a, double gamma, void *m) {
  integrator mem = m;
  struct lmem *l = mem->lmem;
  a->ops->zero(a);
  if (l->jac(t, y, a, l->jac_data)) return fail(mem, -1, "system", "the Jacobian failed");
  l->evaluations++;
  a->ops->scale_add(-gamma, a);
  return 0;
}
static int ls_differences(double t, vec y, mat a, void *m) {
  integrator mem = m;
  struct lmem *l = mem->lmem;
  double *v = y->ops->data(y), *f0 = mem->ftemp->ops->data(mem->ftemp), *f1 = l->x->ops->data(l->x);
  struct mat_content *c = a->content;
  if (mem->f(t, y, mem->ftemp, mem->user)) return 1;
  for (long j = 0; j < c->columns; j++) {
    double keep = v[j], step = 1e-4;
    v[j] += step;
    if (mem->f(t, y, l->x, mem->user)) return 1;
    for (long i = 0; i < c->rows; i++) c->cols[j][i] = (f1[i] - f0[i]) / step;
    v[j] = keep;
  }
  return 0;
}
static int access_lmem(void *m, const char *where, integrator *mem, struct lmem **l) {
  if (m == NULL) return fail(NULL, -1, where, "there is no integrator");
  *mem = (integrator)m;
  if ((*mem)->lmem == NULL) return fail(*mem, -2, where, "there is no linear solver");
  *l = (struct lmem *)(*mem)->lmem;
  return 0;
}
static int integrator_jacobian(void *m, jac_fn jac) {
  integrator mem;
  struct lmem *l;
  int failed = access_lmem(m, "integrator_jacobian", &mem, &l);
  if (failed) return failed;
  if (jac) { l->by_differences = 0; l->jac = jac; l->jac_data = mem->user; }
  else { l->by_differences = 1; l->jac = ls_differences; l->jac_data = mem; }
  return 0;
}
static int ls_setup(integrator mem) {
  struct lmem *l = mem->lmem;
  if (l->system == NULL) l->system = ls_system;
  if (l->system(mem->t, mem->y, mem->ftemp, l->a, mem->gamma, l->system_data)) return 1;
  return l->solver->ops->setup(l->solver, l->a);
}
static void ls_free(integrator mem) {
  struct lmem *l = mem->lmem;
  l->a->ops->destroy(l->a); l->saved->ops->destroy(l->saved);
  l->x->ops->destroy(l->x); l->solver->ops->destroy(l->solver);
  free(l);
}

static void *integrator_create(int order, context ctx) {
  integrator mem = malloc(sizeof *mem);
  if (mem == NULL) return NULL;
  memset(mem, 0, sizeof *mem);
  mem->ctx = ctx; mem->order = order; mem->first = 1;
  mem->errors = report; mem->error_data = mem; mem->error_file = stderr;
  mem->lrw = 20; mem->liw = 10;
  return mem;
}
static void integrator_init(void *m, rhs_fn f, vec y0) {
  integrator mem = m;
  mem->f = f;
  mem->ewt = y0->ops->clone(y0); mem->acor = y0->ops->clone(y0);
  mem->temp = y0->ops->clone(y0); mem->ftemp = y0->ops->clone(y0);
  for (int j = 0; j <= mem->order; j++) mem->zn[j] = y0->ops->clone(y0);
  y0->ops->space(y0, &mem->lrw1, &mem->liw1);
  mem->lrw += (mem->order + 5) * mem->lrw1; mem->liw += (mem->order + 5) * mem->liw1;
  y0->ops->combine(1.0, y0, 0.0, y0, mem->zn[0]);
  nls s = nls_new(y0, mem->ctx);
  ((struct nls_content *)s->content)->sys = residual;
  mem->solver = s; mem->own_solver = 1;
}
static void integrator_user(void *m, void *user) { ((integrator)m)->user = user; }
static void integrator_linear(void *m, lin solver, mat a) {
  integrator mem = m;
  if (mem->lfree) mem->lfree(mem);
  struct lmem *l = malloc(sizeof *l);
  memset(l, 0, sizeof *l);
  l->by_differences = 1; l->jac = ls_differences; l->jac_data = mem; l->solver = solver; l->a = a;
  l->saved = a->ops->clone(a); l->x = mem->temp->ops->clone(mem->temp);
  mem->linit = ls_init; mem->lsetup = ls_setup; mem->lsolve = ls_solve; mem->lfree = ls_free;
  mem->lmem = l;
  struct nls_content *c = mem->solver->content;
  c->setup = call_setup; c->lsolve = call_solve;
}
static int integrator_run(void *m, double end, int steps, vec y) {
  integrator mem = m;
  if (mem->linit) mem->linit(mem);
  mem->y = y;
  mem->h = end / steps;
  mem->ewt->ops->fill(1e3, mem->ewt);
  for (int k = 0; k < steps; k++) {
    int order = mem->first ? 1 : mem->order;
    mem->t += mem->h;
    if (order == 1) {
      mem->gamma = mem->h;
      mem->temp->ops->combine(1.0, mem->zn[0], 0.0, mem->zn[0], mem->temp);
    } else {
      mem->gamma = 2.0 / 3 * mem->h;
      for (int j = 0; j < order; j++) { mem->weights[j] = j ? -1.0 / 3 : 4.0 / 3; mem->many[j] = mem->zn[j]; }
      mem->temp->ops->sum(order, mem->weights, mem->many, mem->temp);
    }
    y->ops->combine(1.0, mem->zn[0], 0.0, mem->zn[0], y);
    if (mem->solver->ops->solve(mem->solver, y, mem->ewt, mem)) return 1;
    for (int j = mem->order; j > 0; j--) mem->zn[j]->ops->combine(1.0, mem->zn[j - 1], 0.0, mem->zn[j], mem->zn[j]);
    mem->zn[0]->ops->combine(1.0, y, 0.0, y, mem->zn[0]);
    mem->first = 0;
    mem->steps++;
  }
  return 0;
}
static void integrator_free(void **m) {
  integrator mem = *m;
  mem->ewt->ops->destroy(mem->ewt); mem->acor->ops->destroy(mem->acor);
  mem->temp->ops->destroy(mem->temp); mem->ftemp->ops->destroy(mem->ftemp);
  for (int j = 0; j <= mem->order; j++) mem->zn[j]->ops->destroy(mem->zn[j]);
  if (mem->own_solver) mem->solver->ops->destroy(mem->solver);
  if (mem->lfree) mem->lfree(mem);
  free(mem);
  *m = NULL;
}

static int rhs(double t, vec y, vec dy, void *user) {
  const double *p = user, *v = y->ops->data(y);
  double *d = dy->ops->data(dy);
  d[0] = v[1];
  d[1] = p[0] * (1 - v[0] * v[0]) * v[1] - p[1] * v[0] + 0.3 * sin(p[2] * t);
  d[2] = p[3] * v[0] - p[4] * v[2];
  return 0;
}
static int jacobian(double t, vec y, mat a, void *user) {
  const double *p = user, *v = y->ops->data(y);
  double **c = ((struct mat_content *)a->content)->cols;
  c[1][0] = 1;
  c[0][1] = -2 * p[0] * v[0] * v[1] - p[1];
  c[1][1] = p[0] * (1 - v[0] * v[0]);
  c[0][2] = p[3];
  c[2][2] = -p[4];
  return 0;
}
static double solved(const double *x, int order, int differences, context ctx) {
  double p[6];
  for (int i = 0; i < 6; i++) p[i] = x[i];
  vec y = vec_new(3, ctx);
  double *v = y->ops->data(y);
  v[0] = p[5]; v[1] = 0.1; v[2] = p[0];
  void *mem = integrator_create(order, ctx);
  integrator_init(mem, rhs, y);
  integrator_user(mem, p);
  mat a = mat_new(3, 3, ctx);
  integrator_linear(mem, lin_new(y, ctx), a);
  integrator_jacobian(mem, differences ? NULL : jacobian);
  int failed = integrator_run(mem, 1.0, 12, y);
  double s = failed ? 0 : v[0] * v[0] + 2 * v[1] + v[2];
  integrator_free(&mem);
  y->ops->destroy(y);
  return s;
}
double loss(const double *x, long n) {
  context ctx = malloc(sizeof *ctx);
  ctx->log = malloc(sizeof *ctx->log);
  ctx->log->errors = stderr; ctx->log->notes = stdout; ctx->log->lines = 0;
  ctx->log->files = map_new(8);
  map_put(ctx->log->files, "stderr", stderr);
  ctx->profiler = NULL; ctx->level = 0;
  double s = solved(x, 1, 0, ctx) + solved(x, 2, 1, ctx);
  map_free(ctx->log->files);
  free(ctx->log);
  free(ctx);
  return s;
}
