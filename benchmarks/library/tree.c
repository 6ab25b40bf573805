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
