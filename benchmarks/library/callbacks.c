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
