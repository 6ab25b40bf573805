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
