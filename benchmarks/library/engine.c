#include <math.h>
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
