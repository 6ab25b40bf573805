/* Entities with components in pools: sparse sets with an array for each type of component, removal by the last element,
   systems over several pools, places of entities that are used again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define PLACES 16u
typedef unsigned entity; /* a place, and how often it was used */
typedef struct { entity *owner; int *sparse; int count, room; } set;
typedef struct { double x, y; } position;
typedef struct { double dx, dy; int bounces; } velocity;
typedef struct { float tint; int layer; double mass; } body;
typedef struct { set set; position *at; } positions;
typedef struct { set set; velocity *at; } velocities;
typedef struct { set set; body *at; } bodies;
typedef struct { positions p; velocities v; bodies b; unsigned version[PLACES]; int spare[PLACES], spares, used; } world;
static void begin(set *s) {
  *s = (set){NULL, malloc(PLACES * sizeof(int)), 0, 0};
  for (int i = 0; i < (int)PLACES; i++) s->sparse[i] = -1;
}
static int enter(set *s, entity e) {
  if (s->count == s->room) s->owner = realloc(s->owner, (s->room = s->room ? 2 * s->room : 2) * sizeof *s->owner);
  s->owner[s->count] = e;
  return s->sparse[e % PLACES] = s->count++;
}
static int leave(set *s, entity e, int *last) {
  int at = s->sparse[e % PLACES];
  *last = --s->count;
  s->owner[at] = s->owner[*last];
  s->sparse[s->owner[at] % PLACES] = at;
  s->sparse[e % PLACES] = -1;
  return at;
}
#define POOL(type, many) \
  static type *add_##type(many *m, entity e, type value) { \
    if (m->set.count == m->set.room) m->at = realloc(m->at, (m->set.room ? 2 * m->set.room : 2) * sizeof(type)); \
    type *made = &m->at[enter(&m->set, e)]; \
    *made = value; \
    return made; \
  } \
  static type *type##_of(many *m, entity e) { \
    int at = m->set.sparse[e % PLACES]; \
    return at < 0 ? NULL : &m->at[at]; \
  } \
  static void drop_##type(many *m, entity e) { \
    int last, at; \
    if (m->set.sparse[e % PLACES] < 0) return; \
    at = leave(&m->set, e, &last); \
    m->at[at] = m->at[last]; \
  }
POOL(position, positions)
POOL(velocity, velocities)
POOL(body, bodies)
static entity create(world *w) {
  int place = w->spares ? w->spare[--w->spares] : w->used++;
  return w->version[place] * PLACES + (unsigned)place;
}
static void destroy(world *w, entity e) {
  drop_position(&w->p, e), drop_velocity(&w->v, e), drop_body(&w->b, e);
  w->version[e % PLACES]++;
  w->spare[w->spares++] = e % PLACES;
}
static void move(world *w, double dt) {
  for (int i = 0; i < w->v.set.count; i++) {
    velocity *own = &w->v.at[i];
    position *p = position_of(&w->p, w->v.set.owner[i]);
    if (!p) continue;
    p->x += dt * own->dx;
    p->y += dt * own->dy * p->x;
    if (p->y > 1) { own->dy = -own->dy; own->bounces++; }
  }
}
static double energy(world *w) {
  double s = 0;
  for (int i = 0; i < w->b.set.count; i++) {
    body *own = &w->b.at[i];
    velocity *v = velocity_of(&w->v, w->b.set.owner[i]);
    position *p = position_of(&w->p, w->b.set.owner[i]);
    if (v) s += own->mass * (v->dx * v->dx + v->dy * v->dy) * (1 + v->bounces);
    if (p) s += own->layer * own->mass * sin(p->x) * p->y;
  }
  return s;
}
double loss(const double *x, long n) {
  world *w = calloc(1, sizeof *w);
  begin(&w->p.set), begin(&w->v.set), begin(&w->b.set);
  entity all[6];
  for (int i = 0; i < n; i++) {
    all[i] = create(w);
    add_position(&w->p, all[i], (position){x[i], x[(i + 1) % n] * 0.5});
    if (i % 3 != 2) add_velocity(&w->v, all[i], (velocity){x[i] * x[i], 1 + x[(i + 2) % n], 0});
    if (i % 2) add_body(&w->b, all[i], (body){0.5f, i, x[i] + 2});
  }
  double s = 0;
  for (int step = 0; step < 4; step++) {
    move(w, 0.1);
    s += energy(w);
    if (step == 1) {
      destroy(w, all[1]);
      all[1] = create(w);
      add_position(&w->p, all[1], (position){s, x[0]});
      add_body(&w->b, all[1], (body){1, 2, x[3] * s});
    }
    if (step == 2) drop_velocity(&w->v, all[0]);
  }
  set *sets[3] = {&w->p.set, &w->v.set, &w->b.set};
  for (int k = 0; k < 3; k++) free(sets[k]->owner), free(sets[k]->sparse);
  free(w->p.at), free(w->v.at), free(w->b.at), free(w);
  return s;
}
