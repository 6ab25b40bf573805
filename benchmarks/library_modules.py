"""The modules that a generated library is made of: C in the styles of libraries, each made new with a random choice.

In the text of a module, `@` is its number, `{a|b|c}!` one of several, `<t,u>` a smooth expression of these names, and
`[a; b; c]!` the members of a struct in some order, with members that nothing needs between them. Each module has
`double run@(struct engine *, const double *x, long n)`; `CALL(t)` is a call of some module before it.
"""

from __future__ import annotations

import re
from random import Random

HEAD = """#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
struct link { struct link *prev, *next; };
struct object;
struct class {
  const char *name;
  void (*update)(struct object *, double);
  double (*energy)(const struct object *, void *);
};
struct object { struct object *next; const struct class *is; struct engine *owner; struct object *same; int id; };
struct engine {
  int calls, depth;
  double scale;
  long count[8];
  int objects;
  struct object *all, *slots[16];
};
#define OWNER(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
static void link_init(struct link *l) { l->prev = l->next = l; }
static void link_add(struct link *l, struct link *at) {
  l->prev = at;
  l->next = at->next;
  at->next->prev = l;
  at->next = l;
}
static void link_remove(struct link *l) { l->prev->next = l->next; l->next->prev = l->prev; }
static void *need(size_t size) { void *p = malloc(size); if (!p) abort(); return p; }
static double soft(double t) { return t / sqrt(1 + t * t); }
static double bump(double t, double u) { return t < u ? (t - u) * (t - u) * 0.25 : 0.125 * (t - u); }
"""

ENGINE = """
static void engine_add(struct engine *e, struct object *o, const struct class *is) {
  unsigned at = (unsigned)e->objects % 16;
  o->is = is;
  o->owner = e;
  o->id = e->objects++;
  o->same = e->slots[at];
  e->slots[at] = o;
  o->next = e->all;
  e->all = o;
}
static struct object *engine_find(struct engine *e, int id) {
  for (struct object *o = e->slots[(unsigned)id % 16]; o; o = o->same)
    if (o->id == id) return o;
  return NULL;
}
static void engine_each(struct engine *e, void (*visit)(struct object *, void *), void *data) {
  for (struct object *o = e->all; o; o = o->next) visit(o, data);
}
static double engine_energy(struct engine *e, double step) {
  double sum = 0;
  for (struct object *o = e->all; o; o = o->next) o->is->update(o, step);
  for (struct object *o = e->all; o; o = o->next) sum += o->is->energy(o, &sum) / (1 + o->id);
  return sum;
}
static void engine_clear(struct engine *e) {
  while (e->all) {
    struct object *o = e->all;
    e->all = o->next;
    free(o);
  }
}
"""

THING = """
struct thing@ { struct object base; [double value; double rate; int kind; struct thing@ *mate]! };
static void thing@_update(struct object *o, double step) {
  struct thing@ *s = (struct thing@ *)o;
  double t = s->value, u = s->rate;
  s->value += step * (<t,u>);
  if (s->mate && s->kind) s->rate += step * s->mate->value;
  o->owner->calls++;
}
static double thing@_energy(const struct object *o, void *data) {
  const struct thing@ *s = (const struct thing@ *)o;
  double t = s->value, u = {*(double *)data * 0.0625|s->rate}!;
  return <t,u>;
}
static const struct class thing@_class = {"thing@", thing@_update, thing@_energy};
static void thing@_count(struct object *o, void *data) { if (o->is == &thing@_class) ++*(int *)data; }
double run@(struct engine *e, const double *x, long n) {
  struct thing@ *last = NULL;
  int first = e->objects, count = 0;
  for (int i = 0; i < {2|3}!; i++) {
    struct thing@ *s = {need(sizeof *s)|calloc(1, sizeof *s)}!;
    s->value = x[i % n];
    s->rate = {0.5|0.25 * x[1]}!;
    s->kind = {1|i}!;
    s->mate = last;
    last = s;
    engine_add(e, &s->base, &thing@_class);
  }
  engine_each(e, thing@_count, &count);
  struct object *o = engine_find(e, first + 1);
  double s = o ? o->is->energy(o, &e->scale) / count : 0;
  return CALL(s);
}
"""

LIST = """
struct body@ { [double mass; double at[{2|3|4}!]; int kind; struct link in; double weight; struct body@ *twin]! };
static struct body@ *body@_new(struct link *all, double mass, int kind) {
  struct body@ *b = {need(sizeof *b)|calloc(1, sizeof *b)}!;
  b->mass = mass;
  b->kind = kind;
  b->twin = NULL;
  b->weight = soft(mass);
  for (int i = 0; i < 2; i++) b->at[i] = 0.25 * i * mass;
  link_add(&b->in, all{|->prev}!);
  return b;
}
static void body@_move(struct body@ *b, double step) {
  for (int i = 0; i < 2; i++) {
    double t = b->at[i], u = b->mass;
    b->at[i] += step * (<t,u>);
  }
  if (b->twin && b->kind % {2|3}! == 0) b->weight += 0.125 * b->twin->at[1];
}
static double body@_energy(struct link *all) {
  double sum = 0;
  for (struct link *l = all->next; l != all; l = l->next) {
    struct body@ *b = OWNER(l, struct body@, in);
    double t = b->at[0], u = b->at[1];
    sum += b->weight * (<t,u>);
  }
  return sum;
}
double run@(struct engine *e, const double *x, long n) {
  struct link all;
  link_init(&all);
  struct body@ *last = NULL;
  for (long i = 0; i < n; i++) {
    struct body@ *b = body@_new(&all, 0.5 + x[i] * e->scale, (int)i % 4);
    b->twin = last;
    last = b;
  }
  e->count[{1|2|3}!]++;
  for (int k = 0; k < {2|3}!; k++)
    for (struct link *l = all.next; l != &all; l = l->next) body@_move(OWNER(l, struct body@, in), 0.0625 * (k + 1));
  double s = body@_energy(&all);
  while (all.next != &all) {
    struct body@ *b = OWNER(all.next, struct body@, in);
    link_remove(&b->in);
    free(b);
  }
  return CALL(s);
}
"""

MAP = """
struct entry@ { [int key; double value; struct entry@ *next; unsigned hash]! };
struct map@ { [struct entry@ **slots; int size; int used; double sum]! };
static unsigned hash@(int key) { return ((unsigned)key * {2654435761u|40503u|2246822519u}!) >> 7; }
static void map@_init(struct map@ *m, int size) {
  m->slots = calloc(size, sizeof *m->slots);
  m->size = size;
  m->used = 0;
  m->sum = 0;
}
static struct entry@ *map@_find(struct map@ *m, int key) {
  unsigned h = hash@(key);
  for (struct entry@ *e = m->slots[h % m->size]; e; e = e->next)
    if (e->hash == h && e->key == key) return e;
  return NULL;
}
static void map@_grow(struct map@ *m) {
  int size = 2 * m->size;
  struct entry@ **slots = calloc(size, sizeof *slots);
  for (int i = 0; i < m->size; i++)
    for (struct entry@ *e = m->slots[i], *next; e; e = next) {
      next = e->next;
      e->next = slots[e->hash % size];
      slots[e->hash % size] = e;
    }
  free(m->slots);
  m->slots = slots;
  m->size = size;
}
static void map@_add(struct map@ *m, int key, double value) {
  struct entry@ *e = map@_find(m, key);
  if (!e) {
    if (m->used >= m->size) map@_grow(m);
    e = need(sizeof *e);
    e->hash = hash@(key);
    e->key = key;
    e->value = 0;
    e->next = m->slots[e->hash % m->size];
    m->slots[e->hash % m->size] = e;
    m->used++;
  }
  double t = e->value, u = value;
  e->value += <t,u>;
  m->sum += value;
}
static double map@_fold(struct map@ *m, double t) {
  double sum = m->sum;
  for (int i = 0; i < m->size; i++)
    for (struct entry@ *e = m->slots[i]; e; e = e->next) { double u = e->value; sum += <t,u>; }
  return sum;
}
static void map@_free(struct map@ *m) {
  for (int i = 0; i < m->size; i++)
    while (m->slots[i]) {
      struct entry@ *e = m->slots[i];
      m->slots[i] = e->next;
      free(e);
    }
  free(m->slots);
}
double run@(struct engine *e, const double *x, long n) {
  struct map@ m;
  map@_init(&m, {2|4}!);
  for (long i = 0; i < 2 * n; i++) map@_add(&m, (int)(i * {7|5|11}! % {9|13}!), x[i % n] * e->scale);
  double s = map@_fold(&m, x[{0|1|2}!]);
  map@_free(&m);
  return CALL(s);
}
"""

CALLBACKS = """
typedef double (*rule@)(double, void *);
struct line@ { [double slope; double shift; int power]! };
struct table@ { [const double *at; long n; double period]! };
struct mix@ { [rule@ first; rule@ second; void *data; double part]! };
struct term@ { [rule@ f; void *data; double weight; int order]! };
static double line@_f(double t, void *p) {
  struct line@ *q = p;
  double u = q->slope;
  for (int i = 0; i < q->power; i++) u = u * t + q->shift;
  return <t,u>;
}
static double bend@_f(double t, void *p) {
  struct line@ *q = p;
  double u = q->shift;
  return q->power > 1 ? <t,u> : q->slope * t;
}
static double table@_f(double t, void *p) {
  struct table@ *q = p;
  double sum = 0;
  for (long i = 0; i < q->n; i++) { double u = q->at[i]; sum += (<t,u>) * sin(q->period * (i + 1)); }
  return sum;
}
static double mix@_f(double t, void *p) {
  struct mix@ *q = p;
  return q->part * q->first(t, q->data) + (1 - q->part) * q->second(t * 0.5, q->data);
}
static double sum@(const struct term@ *terms, int count, int steps) {
  double s = 0;
  for (int k = 0; k < steps; k++) {
    double t = (k + 0.5) / steps;
    for (int i = 0; i < count; i++) {
      const struct term@ *m = &terms[i];
      if (m->order % 2 == 0 || k % 2) s += m->weight * m->f(t, m->data) / steps;
    }
  }
  return s;
}
static int before@(const void *a, const void *b) {
  const struct term@ *s = a, *t = b;
  return s->order - t->order;
}
static double root@(rule@ f, void *data, double low, double high) {
  for (int k = 0; k < {3|4}!; k++) {
    double middle = 0.5 * (low + high);
    if (f(middle, data) > 0.125 * k) high = 0.75 * middle; else low = middle;
  }
  return f(low, data) + 0.5 * high * f(high, data);
}
double run@(struct engine *e, const double *x, long n) {
  struct line@ *line = need(sizeof *line), other = {.slope = x[1], .shift = 0.25, .power = 1};
  struct table@ table = {.at = x, .n = n, .period = {0.5|0.75|1.25}! * e->scale};
  struct mix@ mix = {.first = line@_f, .second = bend@_f, .data = line, .part = 0.25};
  line->slope = x[0];
  line->shift = x[1] * 0.5;
  line->power = {2|3}!;
  struct term@ terms[3] = {
    {.f = line@_f, .data = line, .weight = 0.5, .order = 4},
    {.f = bend@_f, .data = &other, .weight = x[2], .order = 1},
    {.f = bend@_f, .data = line, .weight = 0.25, .order = 2},
  };
  {e->depth++|if (e->depth > 100) return 0|e->calls++}!;
  qsort(terms, {2|3}!, sizeof *terms, before@);
  double s = sum@(terms, 3, {3|4|5}!) + mix@_f(0.5, &mix) + root@(table@_f, &table, x[3] - 1, 1.5);
  free(line);
  return CALL(s);
}
"""

SPARSE = """
struct csr@ { [int rows; int *start; int *column; double *value; double scale]! };
static struct csr@ *csr@_new(int rows, int each) {
  struct csr@ *a = need(sizeof *a);
  a->rows = rows;
  a->scale = 1;
  a->start = malloc((rows + 1) * sizeof *a->start);
  a->column = malloc(rows * each * sizeof *a->column);
  a->value = {malloc(rows * each * sizeof *a->value)|calloc(rows * each, sizeof *a->value)}!;
  return a;
}
static void csr@_fill(struct csr@ *a, int each, const double *x, long n) {
  int at = 0;
  for (int i = 0; i < a->rows; i++) {
    a->start[i] = at;
    for (int k = 0; k < each; k++, at++) {
      double t = x[(i + k) % n], u = x[k % n];
      a->column[at] = (i * {3|5}! + k) % a->rows;
      a->value[at] = <t,u>;
    }
  }
  a->start[a->rows] = at;
}
static void csr@_apply(const struct csr@ *a, const double *p, double *q) {
  for (int i = 0; i < a->rows; i++) {
    double sum = 0;
    for (int k = a->start[i]; k < a->start[i + 1]; k++) sum += a->value[k] * p[a->column[k]];
    q[i] = a->scale * sum;
  }
}
static double norm@(const double *p, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += p[i] * p[i];
  return sqrt(sum + 0.0625);
}
static void csr@_free(struct csr@ *a) {
  free(a->start);
  free(a->column);
  free(a->value);
  free(a);
}
double run@(struct engine *e, const double *x, long n) {
  int rows = {5|6|7}!, each = {2|3}!;
  struct csr@ *a = csr@_new(rows, each);
  csr@_fill(a, each, x, n);
  double *p = malloc(rows * sizeof *p), *q = malloc(rows * sizeof *q);
  for (int i = 0; i < rows; i++) p[i] = 1 + 0.125 * i + x[i % n];
  for (int k = 0; k < {2|3}!; k++) {
    csr@_apply(a, p, q);
    a->scale = 1 / norm@(q, rows);
    {double *swap = p; p = q; q = swap;|memcpy(p, q, rows * sizeof *p);|for (int i = 0; i < rows; i++) p[i] = q[i];}!
  }
  double s = norm@(p, rows) * e->scale + p[1];
  csr@_free(a);
  free(p);
  free(q);
  return CALL(s);
}
"""

SHAPES = """
struct shape@;
struct methods@ { double (*area)(const struct shape@ *); void (*grow)(struct shape@ *, double); int tag; };
struct shape@ { const struct methods@ *m; struct shape@ *next; int id; };
struct disc@ { struct shape@ base; [double radius; int flags]! };
struct box@ { struct shape@ base; [int sides; double size[{2|3}!]; float hue]! };
static double disc@_area(const struct shape@ *s) {
  const struct disc@ *d = (const struct disc@ *)s;
  double t = d->radius, u = d->flags;
  return <t,u>;
}
static void disc@_grow(struct shape@ *s, double by) { ((struct disc@ *)s)->radius *= 1 + 0.125 * by; }
static double box@_area(const struct shape@ *s) {
  const struct box@ *b = (const struct box@ *)s;
  double t = b->size[0], u = b->size[1];
  return b->sides > 2 ? t * u : <t,u>;
}
static void box@_grow(struct shape@ *s, double by) {
  struct box@ *b = (struct box@ *)s;
  for (int i = 0; i < 2; i++) b->size[i] += by * (i + 0.5);
}
static const struct methods@ disc@_methods = {disc@_area, disc@_grow, 1};
static const struct methods@ box@_methods = {box@_area, box@_grow, 2};
static struct shape@ *disc@_new(double radius, struct shape@ *next) {
  struct disc@ *d = need(sizeof *d);
  d->base = (struct shape@){&disc@_methods, next, 1};
  d->radius = radius;
  d->flags = {1|2|3}!;
  return &d->base;
}
static struct shape@ *box@_new(double a, double b, struct shape@ *next) {
  struct box@ *d = need(sizeof *d);
  d->base.m = &box@_methods;
  d->base.next = next;
  d->base.id = 2;
  d->size[0] = a;
  d->size[1] = b;
  d->sides = {2|4}!;
  d->hue = 0;
  return &d->base;
}
static double total@(const struct shape@ *s) {
  double sum = 0;
  for (; s; s = s->next) sum += s->m->area(s) / s->m->tag;
  return sum;
}
double run@(struct engine *e, const double *x, long n) {
  struct shape@ *all = NULL;
  for (long i = 0; i + 1 < n; i++) all = i % {2|3}! ? disc@_new(x[i], all) : box@_new(x[i], x[i + 1], all);
  for (struct shape@ *s = all; s; s = s->next) s->m->grow(s, e->scale * x[{0|1|2}!]);
  double s = total@(all);
  while (all) {
    struct shape@ *next = all->next;
    free(all);
    all = next;
  }
  return CALL(s);
}
"""

TREE = """
enum kind@ { LEAF@, PLUS@, TIMES@, CALL@ };
struct node@ {
  enum kind@ kind;
  union {
    struct { double value; int index; } leaf;
    struct { struct node@ *a, *b; } pair;
    struct { double (*f)(double); struct node@ *of; } call;
  } u;
};
struct arena@ { [char *memory; size_t used; size_t size]! };
static struct node@ *node@_new(struct arena@ *r, enum kind@ kind) {
  if (r->used + sizeof(struct node@) > r->size) abort();
  struct node@ *p = (struct node@ *)(r->memory + r->used);
  r->used += sizeof *p;
  p->kind = kind;
  return p;
}
static struct node@ *leaf@(struct arena@ *r, double value, int index) {
  struct node@ *p = node@_new(r, LEAF@);
  p->u.leaf.value = value;
  p->u.leaf.index = index;
  return p;
}
static struct node@ *pair@(struct arena@ *r, enum kind@ kind, struct node@ *a, struct node@ *b) {
  struct node@ *p = node@_new(r, kind);
  p->u.pair.a = a;
  p->u.pair.b = b;
  return p;
}
static struct node@ *call@(struct arena@ *r, double (*f)(double), struct node@ *of) {
  struct node@ *p = node@_new(r, CALL@);
  p->u.call.f = f;
  p->u.call.of = of;
  return p;
}
static double curve@(double t) { double u = {0.5|0.25|1.5}!; return <t,u>; }
static double value@(const struct node@ *p) {
  switch (p->kind) {
    case LEAF@: return p->u.leaf.value + 0.125 * p->u.leaf.index;
    case PLUS@: return value@(p->u.pair.a) + value@(p->u.pair.b);
    case TIMES@: return value@(p->u.pair.a) * value@(p->u.pair.b);
    default: return p->u.call.f(value@(p->u.call.of));
  }
}
double run@(struct engine *e, const double *x, long n) {
  struct arena@ r;
  r.size = 64 * sizeof(struct node@);
  r.memory = malloc(r.size);
  r.used = 0;
  struct node@ *root = leaf@(&r, e->scale, 1);
  for (long i = 0; i < n; i++) {
    struct node@ *other = leaf@(&r, x[i], (int)i);
    root = pair@(&r, i % {2|3}! ? PLUS@ : TIMES@, root, other);
    if (i % 3 == 1) root = call@(&r, i > 2 ? curve@ : soft, root);
  }
  double s = value@(root);
  free(r.memory);
  return CALL(s);
}
"""

VECTORS = """
struct sample@ { [double at; double value; int label; struct sample@ *best]! };
struct samples@ { [struct sample@ *data; int size; int room; double *weights]! };
static void samples@_push(struct samples@ *v, double at, double value, int label) {
  if (v->size == v->room) {
    v->room = v->room ? 2 * v->room : {2|4}!;
    v->data = realloc(v->data, v->room * sizeof *v->data);
    v->weights = realloc(v->weights, v->room * sizeof *v->weights);
  }
  struct sample@ *s = &v->data[v->size];
  s->at = at;
  s->value = value;
  s->label = label;
  s->best = NULL;
  v->weights[v->size++] = 1;
}
static int compare@(const void *a, const void *b) {
  int s = ((const struct sample@ *)a)->label, t = ((const struct sample@ *)b)->label;
  return s < t ? -1 : s > t;
}
static void smooth@(struct samples@ *v, double width) {
  for (int i = 0; i < v->size; i++) {
    double sum = 0, all = 0;
    for (int k = 0; k < v->size; k++) {
      double t = (v->data[i].at - v->data[k].at) / width, u = v->data[k].value;
      double w = exp(-t * t);
      sum += w * (<t,u>);
      all += w;
    }
    v->weights[i] = sum / all;
    v->data[i].best = &v->data[(i + 1) % v->size];
  }
}
static double read@(const struct samples@ *v) {
  double sum = 0;
  for (int i = 0; i < v->size; i++) {
    const struct sample@ *s = &v->data[i];
    switch (s->label % 3) {
      case 0: sum += v->weights[i]; break;
      case 1: sum += v->weights[i] * s->best->value; break;
      default: sum -= bump(s->at, s->value);
    }
  }
  return sum;
}
double run@(struct engine *e, const double *x, long n) {
  struct samples@ v = {0};
  for (long i = 0; i < n; i++) samples@_push(&v, x[i] * e->scale, x[(i + 1) % n], (int)(i * 5 % 7));
  {qsort(v.data, v.size, sizeof *v.data, compare@);|}!
  smooth@(&v, {0.75|1.5|2}!);
  double s = read@(&v);
  free(v.data);
  free(v.weights);
  return CALL(s);
}
"""

SOLVER = """
struct state@ { [double y[{3|4}!]; double time; int steps; double error]! };
struct method@ { [const char *name; int stages; double a[3]; double b[3]]! };
struct problem@ { void (*rate)(double, const double *, double *, int, void *); void *data; int size; };
struct data@ { [double stiff; double couple; const double *force; int mode]! };
static const struct method@ methods@[2] = {
  {.name = "heun", .stages = 2, .a = {0, 1, 0}, .b = {0.5, 0.5, 0}},
  {.name = "three", .stages = 3, .a = {0, 0.5, 0.75}, .b = {0.25, 0.25, 0.5}},
};
static void rate@(double time, const double *y, double *dy, int size, void *p) {
  const struct data@ *d = p;
  for (int i = 0; i < size; i++) {
    double t = y[i], u = y[(i + 1) % size];
    dy[i] = -d->stiff * t + d->couple * (<t,u>) + d->force[i % 2];
  }
  if (d->mode) dy[0] += 0.125 * sin(time);
}
static void step@(struct state@ *s, const struct problem@ *p, const struct method@ *m, double h) {
  double k[3][4], y[4];
  for (int j = 0; j < m->stages; j++) {
    for (int i = 0; i < p->size; i++) y[i] = s->y[i] + (j ? h * m->a[j] * k[j - 1][i] : 0);
    p->rate(s->time + h * m->a[j], y, k[j], p->size, p->data);
  }
  double error = 0;
  for (int i = 0; i < p->size; i++) {
    double sum = 0;
    for (int j = 0; j < m->stages; j++) sum += m->b[j] * k[j][i];
    s->y[i] += h * sum;
    error += (sum - k[0][i]) * (sum - k[0][i]);
  }
  s->error += sqrt(error + 1e-3);
  s->time += h;
  s->steps++;
}
double run@(struct engine *e, const double *x, long n) {
  struct data@ d = {.stiff = x[0], .couple = 0.5 * e->scale, .force = x + 1, .mode = {0|1}!};
  struct problem@ p = {rate@, &d, 3};
  struct state@ *s = {need(sizeof *s)|malloc(sizeof *s)}!;
  memset(s, 0, sizeof *s);
  for (int i = 0; i < 3; i++) s->y[i] = x[(i + {1|2}!) % n];
  const struct method@ *m = &methods@[n % 2];
  for (int k = 0; k < {3|4|5}!; k++) step@(s, &p, m, 0.125);
  double sum = s->y[0] + s->y[1] * s->y[2] + 0.125 * s->error;
  free(s);
  return CALL(sum);
}
"""

PARSER = """
struct token@ { [int type; int index; double value]! };
struct stack@ { int top; int errors; double values[16]; };
struct parser@ { [const char *text; int at; struct stack@ *stack; const double *x; long n]! };
static double (*const functions@[3])(double) = {{sin|cos|tanh}!, soft, exp};
static struct token@ next@(struct parser@ *p) {
  struct token@ t = {0};
  while (p->text[p->at] == ' ') p->at++;
  char c = p->text[p->at];
  if (!c) return t;
  p->at++;
  if (c >= '0' && c <= '9') {
    t.type = 1;
    t.value = 0.25 * (c - '0');
  } else if (c >= 'a' && c <= 'f') {
    t.type = 2;
    t.index = (c - 'a') % (int)p->n;
    t.value = p->x[t.index];
  } else if (c >= 'A' && c <= 'C') {
    t.type = 3;
    t.index = c - 'A';
  } else {
    t.type = 4;
    t.index = c;
  }
  return t;
}
static void push@(struct stack@ *s, double v) { if (s->top < 16) s->values[s->top++] = v; else s->errors++; }
static double pop@(struct stack@ *s) { return s->top > 0 ? s->values[--s->top] : (s->errors++, 0.0); }
static double run_text@(struct parser@ *p) {
  for (;;) {
    struct token@ t = next@(p);
    double a, b;
    switch (t.type) {
      case 0: return pop@(p->stack);
      case 1: case 2: push@(p->stack, t.value); break;
      case 3: push@(p->stack, functions@[t.index](pop@(p->stack))); break;
      default:
        b = pop@(p->stack);
        a = pop@(p->stack);
        push@(p->stack, t.index == '+' ? a + b : t.index == '*' ? a * b : a - b);
    }
  }
}
double run@(struct engine *e, const double *x, long n) {
  struct parser@ p;
  p.text = "{ab+c*A|a b c * + B d -|abcdef+*+-+ 3 *|e1+ B f 2 * -}!";
  p.at = 0;
  p.x = x;
  p.n = n;
  p.stack = calloc(1, sizeof *p.stack);
  double t = run_text@(&p), u = e->scale;
  if (p.stack->errors) t = 0;
  free(p.stack);
  double s = <t,u>;
  return CALL(s);
}
"""

DENSE = """
struct matrix@ { [int rows; int columns; double **row; int *order]! };
static struct matrix@ *matrix@_new(int rows) {
  struct matrix@ *m = need(sizeof *m);
  m->rows = m->columns = rows;
  m->row = malloc(rows * sizeof *m->row);
  m->order = malloc(rows * sizeof *m->order);
  for (int i = 0; i < rows; i++) {
    m->row[i] = malloc(rows * sizeof **m->row);
    m->order[i] = i;
  }
  return m;
}
static void matrix@_free(struct matrix@ *m) {
  for (int i = 0; i < m->rows; i++) free(m->row[i]);
  free(m->row);
  free(m->order);
  free(m);
}
static void factor@(struct matrix@ *m) {
  for (int k = 0; k < m->rows; k++) {
    int best = k;
    for (int i = k + 1; i < m->rows; i++) if (fabs(m->row[i][k]) > fabs(m->row[best][k])) best = i;
    if (best != k) {
      double *row = m->row[k];
      m->row[k] = m->row[best];
      m->row[best] = row;
      int o = m->order[k];
      m->order[k] = m->order[best];
      m->order[best] = o;
    }
    for (int i = k + 1; i < m->rows; i++) {
      double f = m->row[i][k] /= m->row[k][k];
      for (int j = k + 1; j < m->rows; j++) m->row[i][j] -= f * m->row[k][j];
    }
  }
}
static void solve@(const struct matrix@ *m, const double *b, double *y) {
  for (int i = 0; i < m->rows; i++) {
    y[i] = b[m->order[i]];
    for (int j = 0; j < i; j++) y[i] -= m->row[i][j] * y[j];
  }
  for (int i = m->rows - 1; i >= 0; i--) {
    for (int j = i + 1; j < m->rows; j++) y[i] -= m->row[i][j] * y[j];
    y[i] /= m->row[i][i];
  }
}
double run@(struct engine *e, const double *x, long n) {
  int rows = {3|4}!;
  struct matrix@ *m = matrix@_new(rows);
  double b[4], y[4];
  for (int i = 0; i < rows; i++) {
    b[i] = x[i % n] * e->scale;
    for (int j = 0; j < rows; j++) {
      double t = x[(i + j) % n], u = 0.25 * (i - j);
      m->row[i][j] = 0.25 * (<t,u>) + ((i + {0|1}!) % rows == j ? 4 : 0);
    }
  }
  factor@(m);
  solve@(m, b, y);
  double s = 0;
  for (int i = 0; i < rows; i++) s += y[i] * (i + 1);
  matrix@_free(m);
  return CALL(s);
}
"""

KINDS = (THING, LIST, MAP, CALLBACKS, SPARSE, SHAPES, TREE, VECTORS, SOLVER, PARSER, DENSE)
FILLERS = (
    "int spare", "double unused[2]", "char label_of[12]", "long stamp", "float ratio", "void *user", "short marks[3]",
)


def library(lines: int, seed: int = 1) -> str:
    """The source of a library of about so many lines; `double loss(const double *x, long n)` reaches all of it."""
    random = Random(seed)
    parts, names, length = [HEAD, ENGINE], list[str](), (HEAD + ENGINE).count("\n")
    while length < lines or not names:
        parts.append(module(len(names), random, names[-20:]))
        names.append(f"run{len(names)}")
        length += parts[-1].count("\n") + 1
    listed = [name for name in names if random.random() < 0.4]
    called = "".join(f"  s += {name}(&e, x, n);\n" for name in names if name not in listed)
    table = ", ".join([*listed, names[0]])
    parts.append(f"""
static double (*const registry[])(struct engine *, const double *, long) = {{{table}}};
double loss(const double *x, long n) {{
  struct engine e = {{.scale = 0.5 + 0.25 * x[0]}};
  double s = 0;
  for (size_t i = 0; i < sizeof registry / sizeof *registry; i++) s += registry[i](&e, x, n);
{called}  s += engine_energy(&e, 0.125);
  engine_clear(&e);
  return s;
}}
""")
    return "".join(parts)


def module(number: int, random: Random, earlier: list[str]) -> str:
    """The C of one module; `earlier`: the functions that it may call."""
    text = random.choice(KINDS)
    text = re.sub(r"\{([^{}]*)\}!", lambda m: random.choice(m[1].split("|")), text)
    text = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]!", lambda m: _members(m[1], random), text)
    text = re.sub(r"<(\w+),(\w+)>", lambda m: _expression(m[1], m[2], random, 3), text)
    text = re.sub(r"CALL\((\w+)\)", lambda m: _call(m[1], random, earlier), text)
    return text.replace("@", str(number))


def _members(text: str, random: Random) -> str:
    """The members of a struct in some order, with others that nothing needs."""
    members = [part.strip() for part in text.split(";")]
    members += random.sample(FILLERS, random.randrange(3))
    random.shuffle(members)
    return "".join(f"{member}; " for member in members).strip()


def _expression(t: str, u: str, random: Random, depth: int) -> str:
    """A smooth expression of two names whose values and slopes stay small."""
    if depth == 0 or random.random() < 0.2:
        return random.choice([t, u, f"0.5 * {t}", f"({t} - {u})", f"0.25 * {t} * {u}"])
    a, b = _expression(t, u, random, depth - 1), _expression(u, t, random, depth - 1)
    return random.choice([
        f"soft({a} + {b})", f"sin({a})", f"0.5 * ({a} - {b})", f"bump({a}, {b})", f"{a} / (2 + cos({b}))",
        f"tanh({a}) * {b}", f"log(1.5 + ({a}) * ({a}))", f"(({a}) > 0.25 ? {b} : 0.5 * ({a}))", f"soft({b}) * ({a})",
    ])  # fmt: skip


def _call(value: str, random: Random, earlier: list[str]) -> str:
    """What a module returns: its value, perhaps with that of another module."""
    if not earlier or random.random() < 0.5:
        return f"soft({value})"
    return f"soft({value} + 0.25 * {random.choice(earlier)}(e, x, n))"
