// Structs whose shadow is a copy in which the arrays of floats are others: those of integers are their own shadows.
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  int n;
  double *a, *b;
  int *pivot;
  int *count;
  int *seen;
  short *order;
} work;

void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef struct { double first, second; } two;
two __enzyme_fwddiff_two(void *, ...);
extern int enzyme_dup, enzyme_width;
enum { N = 3 };

static int bad;
static void check(const char *what, double got, double want) {
  if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) {
    printf("%s: %.12g, not %.12g\n", what, got, want);
    bad = 1;
  }
}

// Linear equations by elimination with pivots; rows that were used, how often, in what order.
static double solve(work *w) {
  static const short first[N] = {2, 0, 1};
  int n = w->n;
  double *a = w->a, *b = w->b, x[N], r = 0;
  short mine[N];
  for (int i = 0; i < n; i++) w->pivot[i] = i, w->count[i] = 0, mine[i] = first[i];
  memset(w->seen, 255, n * sizeof(int));
  memcpy(w->order, mine, sizeof mine);
  for (int k = 0; k < n; k++) {
    int p = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(a[w->pivot[i] * n + k]) > fabs(a[w->pivot[p] * n + k])) p = i;
    int t = w->pivot[k];
    w->pivot[k] = w->pivot[p];
    w->pivot[p] = t;
    w->seen[k] += 2;
    for (int i = k + 1; i < n; i++) {
      double f = a[w->pivot[i] * n + k] / a[w->pivot[k] * n + k];
      for (int j = k; j < n; j++) a[w->pivot[i] * n + j] -= f * a[w->pivot[k] * n + j];
      b[w->pivot[i]] -= f * b[w->pivot[k]];
      w->count[i]++;
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    double v = b[w->pivot[i]];
    for (int j = i + 1; j < n; j++) v -= a[w->pivot[i] * n + j] * x[j];
    x[i] = v / a[w->pivot[i] * n + i];
    r += x[i] * x[i] * (w->count[i] + w->seen[i] + w->order[i] + 1);
  }
  return r;
}

static const double A[N * N] = {1, 2, 3, 4, 5, 6, 7, 8, 10.5}, B[N] = {1, 2, 4};
static double a[N * N], b[N], da[N * N], db[N];
static int pivot[N];
static int count[N];
static int seen[N];
static short order[N];
static work w = {N, a, b, pivot, count, seen, order};

static void start(int direction, double by) {
  memcpy(a, A, sizeof A);
  memcpy(b, B, sizeof B);
  memset(da, 0, sizeof da);
  memset(db, 0, sizeof db);
  if (direction < N * N) a[direction] += by, da[direction] = 1;
  else b[direction - N * N] += by, db[direction - N * N] = 1;
}

static void integers(const char *what) {
  for (int i = 0; i < N; i++) {
    check(what, pivot[i], (int[]){2, 0, 1}[i]);
    check(what, count[i], i);
    check(what, seen[i], 1);
    check(what, order[i], (int[]){2, 0, 1}[i]);
  }
}

int main(void) {
  work d = w;
  d.a = da, d.b = db;
  double want[N * N + N];
  for (int i = 0; i < N * N + N; i++) {
    double v[2];
    for (int side = 0; side < 2; side++) start(i, side ? 1e-6 : -1e-6), v[side] = solve(&w);
    want[i] = (v[1] - v[0]) / 2e-6;
  }
  for (int i = 0; i < N * N + N; i++) {
    start(i, 0);
    memset(pivot, 9, sizeof pivot);
    check("forward", __enzyme_fwddiff((void *)solve, enzyme_dup, &w, &d), want[i]);
    integers("integers of forward mode");
  }
  start(0, 0);
  da[0] = 0;
  memset(pivot, 9, sizeof pivot);
  __enzyme_autodiff((void *)solve, enzyme_dup, &w, &d);
  for (int i = 0; i < N * N + N; i++) check("reverse", i < N * N ? da[i] : db[i - N * N], want[i]);
  integers("integers of reverse mode");
  start(0, 0);
  da[0] = 0;
  static double ea[N * N], eb[N];
  work e = d;
  e.a = ea, e.b = eb;
  da[1] = eb[2] = 1;
  two both = __enzyme_fwddiff_two((void *)solve, enzyme_width, 2, enzyme_dup, &w, &d, &e);
  check("two directions, first", both.first, want[1]);
  check("two directions, second", both.second, want[N * N + 2]);
  integers("integers of two directions");
  if (!bad) printf("all right\n");
  return bad;
}
