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
