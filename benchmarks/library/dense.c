struct matrix@ { [int rows; int columns; double **row; int *order]! };
static struct matrix@ *matrix@_new(int rows) {
  struct matrix@ *m = need(sizeof *m);
  m->rows = m->columns = rows;
  m->row = malloc(rows * sizeof *m->row);
  m->order = malloc(rows * sizeof *m->order);
  for (int i = 0; i < rows; i++) {
    m->row[i] = malloc(rows * sizeof **m->row);
    m->order[i] = i;
  }
  return m;
}
static void matrix@_free(struct matrix@ *m) {
  for (int i = 0; i < m->rows; i++) free(m->row[i]);
  free(m->row);
  free(m->order);
  free(m);
}
static void factor@(struct matrix@ *m) {
  for (int k = 0; k < m->rows; k++) {
    int best = k;
    for (int i = k + 1; i < m->rows; i++) if (fabs(m->row[i][k]) > fabs(m->row[best][k])) best = i;
    if (best != k) {
      double *row = m->row[k];
      m->row[k] = m->row[best];
      m->row[best] = row;
      int o = m->order[k];
      m->order[k] = m->order[best];
      m->order[best] = o;
    }
    for (int i = k + 1; i < m->rows; i++) {
      double f = m->row[i][k] /= m->row[k][k];
      for (int j = k + 1; j < m->rows; j++) m->row[i][j] -= f * m->row[k][j];
    }
  }
}
static void solve@(const struct matrix@ *m, const double *b, double *y) {
  for (int i = 0; i < m->rows; i++) {
    y[i] = b[m->order[i]];
    for (int j = 0; j < i; j++) y[i] -= m->row[i][j] * y[j];
  }
  for (int i = m->rows - 1; i >= 0; i--) {
    for (int j = i + 1; j < m->rows; j++) y[i] -= m->row[i][j] * y[j];
    y[i] /= m->row[i][i];
  }
}
double run@(struct engine *e, const double *x, long n) {
  int rows = {3|4}!;
  struct matrix@ *m = matrix@_new(rows);
  double b[4], y[4];
  for (int i = 0; i < rows; i++) {
    b[i] = x[i % n] * e->scale;
    for (int j = 0; j < rows; j++) {
      double t = x[(i + j) % n], u = 0.25 * (i - j);
      m->row[i][j] = 0.25 * (<t,u>) + ((i + {0|1}!) % rows == j ? 4 : 0);
    }
  }
  factor@(m);
  solve@(m, b, y);
  double s = 0;
  for (int i = 0; i < rows; i++) s += y[i] * (i + 1);
  matrix@_free(m);
  return CALL(s);
}
