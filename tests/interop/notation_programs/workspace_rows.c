// Memory that variables keep between calls, with pointers in it: rows, rows of rows, layers.
#include "workspaces.h"

static double **rows, *flat;  // rows of one block, and more room than rows
static double matrix(const double *x, long n) {
  for (long i = 0; i < n; i++) rows[i % 3][i / 3] = x[i] * x[0];
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + flat[(i % 3) * 6 + i / 3] * rows[i % 3][i / 3];
  return s;
}
static double **kept;
static long room;
static double grown(const double *x, long n) {
  if (room < n) { for (int i = 0; i < 3; i++) kept[i] = realloc(kept[i], n * 8); room = n; }
  for (long i = 0; i < n; i++) kept[0][i] = x[i] * x[0];
  for (int t = 0; t < 3; t++) {
    for (long i = 0; i < n; i++) kept[1][i] = kept[0][i] * kept[0][(i + 1) % n];
    double *other = kept[0];
    kept[0] = kept[1], kept[1] = other;
  }
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + kept[0][i];
  return s;
}
typedef struct { int n; double *w, *out; } layer;
static layer *net;
static int depth;
static double network(const double *x, long n) {
  const double *in = x;
  for (int l = 0; l < depth; in = net[l++].out)
    for (long i = 0; i < n; i++) {
      double a = 0;
      for (long j = 0; j < n; j++) a += net[l].w[i * n + j] * in[j];
      net[l].out[i] = tanh(a);
    }
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + in[i];
  return s;
}
static double ***boxes;
static int **order;
typedef struct { double *right; double **left; } pair;
static pair *both;
static double deep(const double *x, long n) {
  for (long i = 0; i < n; i++) boxes[i % 2][i % 3][i] = x[i] * x[order[i % 2][i] % n];
  for (long i = 0; i < n; i++) both->left[i % 2][i] = boxes[i % 2][i % 3][i] * x[i], both->right[i] = x[i];
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + both->left[i % 2][i] * both->right[n - 1 - i];
  return s;
}
DERIVATIVES(matrix)
DERIVATIVES(grown)
DERIVATIVES(network)
DERIVATIVES(deep)

static double **table(int count, int bytes) {
  double **made = malloc(count * sizeof *made);
  for (int i = 0; i < count; i++) made[i] = calloc(1, bytes);
  return made;
}
int main(void) {
  double x[MOST] = {0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8, 1.1, 0.6, 0.35, 0.45, 0.95};
  rows = malloc(80), flat = malloc(18 * 8), kept = calloc(3, 8);
  memset(rows, 0x5a, 80);
  for (int i = 0; i < 3; i++) rows[i] = flat + 6 * i;
  net = malloc(3 * sizeof *net), depth = 3;
  for (int l = 0; l < 3; l++) {
    net[l].w = malloc(MOST * MOST * 8), net[l].out = malloc(MOST * 8);
    for (int i = 0; i < MOST * MOST; i++) net[l].w[i] = 0.1 * ((i * 7 + l) % 5) - 0.15;
  }
  boxes = malloc(16), order = (int **)table(2, 4 * MOST), both = malloc(sizeof *both);
  for (int i = 0; i < 2; i++) boxes[i] = table(3, 8 * MOST);
  for (int i = 0; i < 2 * MOST; i++) order[i / MOST][i % MOST] = (5 * i) % 7;
  both->left = table(2, 8 * MOST), both->right = malloc(8 * MOST);
  for (int k = 0; k < 4; k++) {
    long n = (long[]){4, 4, 9, 3}[k];
    all("matrix", matrix, matrix_g, matrix_t, matrix_h, x, n);
    all("grown", grown, grown_g, grown_t, grown_h, x, n);
    all("network", network, network_g, network_t, network_h, x, n);
    all("deep", deep, deep_g, deep_t, deep_h, x, n);
  }
  puts("all right");
}
