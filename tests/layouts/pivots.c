/* A matrix, its pivots and the right-hand side in one struct; rows are exchanged by their numbers, kept as bytes. */
#include <math.h>
#include <stdlib.h>

typedef struct {
  unsigned char row[4];
  double a[4][4];
  int n, swaps;
  double b[4];
  const double *x;
  double det;
} system_;

static int largest(const system_ *s, int k) {
  int best = k;
  for (int i = k + 1; i < s->n; i++)
    if (fabs(s->a[s->row[i]][k]) > fabs(s->a[s->row[best]][k])) best = i;
  return best;
}

static void factorise(system_ *s) {
  s->det = 1;
  for (int k = 0; k < s->n; k++) {
    int p = largest(s, k);
    if (p != k) {
      unsigned char r = s->row[p];
      s->row[p] = s->row[k];
      s->row[k] = r;
      s->swaps++;
    }
    int at = s->row[k];
    s->det *= s->a[at][k];
    for (int i = k + 1; i < s->n; i++) {
      int to = s->row[i];
      double f = s->a[to][k] / s->a[at][k];
      for (int j = k; j < s->n; j++) s->a[to][j] -= f * s->a[at][j];
      s->b[to] -= f * s->b[at];
    }
  }
}

double loss(const double *x, long n) {
  system_ *s = calloc(1, sizeof *s);
  s->n = 4;
  s->x = x;
  for (int i = 0; i < s->n; i++) {
    s->row[i] = (unsigned char)i;
    s->b[i] = s->x[(i + 2) % n];
    for (int j = 0; j < s->n; j++) s->a[i][j] = 1 / (1 + fabs(s->x[i] - 2 * s->x[(j + 1) % n] + 0.4 * i * j));
  }
  factorise(s);
  for (int k = s->n - 1; k >= 0; k--) {
    int at = s->row[k];
    for (int j = k + 1; j < s->n; j++) s->b[at] -= s->a[at][j] * s->b[s->row[j]];
    s->b[at] /= s->a[at][k];
  }
  double sum = 0.1 * s->det * (s->swaps % 2 ? -1 : 1);
  for (int i = 0; i < s->n; i++) sum += 0.1 * (i + 1) * s->b[s->row[i]];
  free(s);
  return sum;
}
