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
