/* A table of objects with flags in bits, chars and shorts between the numbers. */
#include <stdlib.h>
typedef struct { unsigned active : 1, kind : 3; signed char shift; short rank; float weight; double value; char name[5]; double slope; } object;
typedef struct { object **items; size_t count; } registry;
double loss(const double *x, long n) {
  registry r = {calloc(n, sizeof(object *)), (size_t)n};
  for (long i = 0; i < n; i++) {
    object *o = r.items[(i * 5) % n] = calloc(1, sizeof *o);
    o->active = i % 4 != 3; o->kind = i % 5; o->shift = (signed char)(i - 2); o->rank = (short)i; o->weight = 0.5f; o->value = x[i]; o->name[i % 5] = 'a'; o->slope = x[i] * x[0];
  }
  double s = 0;
  for (size_t i = 0; i < r.count; i++) {
    object *o = r.items[i];
    if (o->active) s += o->value * o->slope * o->weight * (o->kind + 1) + o->shift * o->value + (o->name[o->rank % 5] == 'a') * o->slope;
    free(o);
  }
  free(r.items);
  return s;
}
