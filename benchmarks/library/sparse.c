struct csr@ { [int rows; int *start; int *column; double *value; double scale]! };
static struct csr@ *csr@_new(int rows, int each) {
  struct csr@ *a = need(sizeof *a);
  a->rows = rows;
  a->scale = 1;
  a->start = malloc((rows + 1) * sizeof *a->start);
  a->column = malloc(rows * each * sizeof *a->column);
  a->value = {malloc(rows * each * sizeof *a->value)|calloc(rows * each, sizeof *a->value)}!;
  return a;
}
static void csr@_fill(struct csr@ *a, int each, const double *x, long n) {
  int at = 0;
  for (int i = 0; i < a->rows; i++) {
    a->start[i] = at;
    for (int k = 0; k < each; k++, at++) {
      double t = x[(i + k) % n], u = x[k % n];
      a->column[at] = (i * {3|5}! + k) % a->rows;
      a->value[at] = <t,u>;
    }
  }
  a->start[a->rows] = at;
}
static void csr@_apply(const struct csr@ *a, const double *p, double *q) {
  for (int i = 0; i < a->rows; i++) {
    double sum = 0;
    for (int k = a->start[i]; k < a->start[i + 1]; k++) sum += a->value[k] * p[a->column[k]];
    q[i] = a->scale * sum;
  }
}
static double norm@(const double *p, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += p[i] * p[i];
  return sqrt(sum + 0.0625);
}
static void csr@_free(struct csr@ *a) {
  free(a->start);
  free(a->column);
  free(a->value);
  free(a);
}
double run@(struct engine *e, const double *x, long n) {
  int rows = {5|6|7}!, each = {2|3}!;
  struct csr@ *a = csr@_new(rows, each);
  csr@_fill(a, each, x, n);
  double *p = malloc(rows * sizeof *p), *q = malloc(rows * sizeof *q);
  for (int i = 0; i < rows; i++) p[i] = 1 + 0.125 * i + x[i % n];
  for (int k = 0; k < {2|3}!; k++) {
    csr@_apply(a, p, q);
    a->scale = 1 / norm@(q, rows);
    {double *swap = p; p = q; q = swap;|memcpy(p, q, rows * sizeof *p);|for (int i = 0; i < rows; i++) p[i] = q[i];}!
  }
  double s = norm@(p, rows) * e->scale + p[1];
  csr@_free(a);
  free(p);
  free(q);
  return CALL(s);
}
