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
