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
