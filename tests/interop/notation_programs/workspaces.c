// Memory that variables keep between calls, allocated by whom: main, the value's own call, an earlier derivative.
#include "workspaces.h"

static double *grown, *again;
static long room, place;
static double growing(const double *x, long n) {
  if (room < n) { free(grown); grown = malloc(n * 8); room = n; }
  if (place < 2 * n) { again = realloc(again, 16 * n); place = 2 * n; }
  for (long i = 0; i < n; i++) grown[i] = x[i] * x[0];
  for (long i = 0; i < 2 * n; i++) again[i] = grown[i % n] * grown[i / 2];
  double s = 0;
  for (long i = 0; i < 2 * n; i++) s = 0.9 * s + again[i] * again[i];
  return s;
}
static double *fresh;
static double each_call(const double *x, long n) {
  if (fresh) free(fresh);
  fresh = malloc(8 * n);
  double s = 0;
  for (long i = 0; i < n; i++) fresh[i] = sin(x[i]) * x[0];
  for (long i = 0; i < n; i++) s = 0.9 * s + fresh[i] * fresh[n - 1 - i];
  return s;
}
double *odd, *even;
static double *table;
static double levels(const double *x, long n) {
  for (long i = 0; i < n; i++) odd[i] = x[i] * table[i];
  for (int t = 0; t < 3; t++) {
    for (long i = 0; i < n; i++) even[i] = odd[i] * odd[(i + 1) % n];
    double *other = odd;
    odd = even, even = other;
  }
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + odd[i];
  return s;
}
static double buffer[2 * MOST], rows[MOST][3];
static double *named = buffer + 1;                                  // other names of them, which nothing changes
static struct { double *first; long step; } part = {&rows[0][1], 3};
static double *table_of_rows[4] = {rows[0], rows[1], rows[2], rows[3]};
static double other_names(const double *x, long n) {
  for (long i = 0; i < n; i++) { named[i] = x[i] * x[0]; part.first[part.step * i] = named[i] * x[i]; }
  double s = buffer[1];
  for (long i = 0; i < n; i++) s = 0.9 * s + rows[i][1] * named[n - 1 - i];
  for (long i = 0; i < 4; i++) s += table_of_rows[i][1] * buffer[i];
  return s;
}
typedef struct { double v; int next; } cell;
static struct { int *order; cell *cells; double *left, *right; long n; } solver;
static double fields(const double *x, long n) {
  for (long i = 0; i < n; i++) { solver.cells[i].v = x[i] * x[0]; solver.cells[i].next = (3 * i) % n; }
  for (long i = 0; i < n; i++) solver.left[i] = solver.cells[solver.cells[i].next].v * solver.cells[solver.order[i] % n].v;
  for (long i = 0; i < n; i++) solver.right[i] = solver.left[i] * solver.left[n - 1 - i];
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + solver.right[i];
  return s;
}
static double *middle, *same;  // into one block
static double views(const double *x, long n) {
  for (long i = 0; i < n; i++) middle[i] = x[i] * x[0];
  for (long i = 0; i < n; i++) same[i] = middle[i] * same[i];
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + middle[i];
  return s;
}
static char *bytes;  // memory without floats, of which nothing is known; a stream
static FILE *out;
static double *sums;
static double others(const double *x, long n) {
  for (long i = 0; i < n; i++) sums[i] = x[i] * x[0];
  memset(bytes, 1, n);
  if (!out) fputc(' ', out);
  double s = 0;
  for (long i = 0; i < n; i++) s = 0.9 * s + sums[i] * sums[i] * bytes[i];
  return s;
}
DERIVATIVES(growing)
DERIVATIVES(each_call)
DERIVATIVES(levels)
DERIVATIVES(fields)
DERIVATIVES(views)
DERIVATIVES(others)
DERIVATIVES(other_names)

// A gradient that begins with what the one before has left, differentiated again.
static double *start;
static double warm(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) { start[i] += x[i] * x[0]; s = 0.9 * s + start[i] * start[i]; }
  return s;
}
static double twice(const double *x, long n) {
  double g[MOST] = {0}, s = 0;
  for (long i = 0; i < n; i++) start[i] = x[i] * x[i];
  for (int k = 0; k < 2; k++) {
    __enzyme_autodiff((void *)warm, enzyme_dup, x, g, enzyme_const, n);
    for (long i = 0; i < n; i++) s += g[i] * x[i];
  }
  return s;
}
static void twice_g(const double *x, double *g, long n) { __enzyme_autodiff((void *)twice, enzyme_dup, x, g, enzyme_const, n); }

int main(void) {
  double x[MOST] = {0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8, 1.1, 0.6, 0.35, 0.45, 0.95};
  double *block = calloc(2 * MOST, 8);
  odd = malloc(8 * MOST), even = malloc(8 * MOST), table = malloc(8 * MOST), start = malloc(8 * MOST);
  solver.order = malloc(4 * MOST), solver.cells = malloc(MOST * sizeof(cell));
  solver.left = malloc(8 * MOST), solver.right = calloc(MOST, 8);
  for (int i = 0; i < MOST; i++) table[i] = 1 + 0.1 * i, solver.order[i] = (7 * i) % 5;
  middle = same = block + 3;
  bytes = malloc(MOST), out = stdout, sums = malloc(8 * MOST);
  growing(x, 2);
  for (int k = 0; k < 4; k++) {
    long n = (long[]){4, 4, 9, 3}[k];
    all("growing", growing, growing_g, growing_t, growing_h, x, n);
    all("each call", each_call, each_call_g, each_call_t, each_call_h, x, n);
    all("levels", levels, levels_g, levels_t, levels_h, x, n);
    all("fields", fields, fields_g, fields_t, fields_h, x, n);
    all("views", views, views_g, views_t, views_h, x, n);
    all("others", others, others_g, others_t, others_h, x, n);
    all("other names", other_names, other_names_g, other_names_t, other_names_h, x, n);
    first("twice", twice, twice_g, x, n);
    if (k == 1) table = realloc(table, 8 * 4000), middle = same = calloc(MOST, 8), sums = calloc(MOST, 8), fresh = NULL;
  }
  puts("all right");
}
