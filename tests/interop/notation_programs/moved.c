#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// functions that move numbers of their caller and look at none of them: by memcpy and memmove, sorted by an integer
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
static int failed;
typedef struct { int cell; float weight; double charge; char name[12]; double spin; } particle;
static int by_cell(const void *a, const void *b) { return ((const particle *)a)->cell - ((const particle *)b)->cell; }
void sorted(particle *p, int n) { qsort(p, n, sizeof *p, by_cell); }
void exchanged(particle *p, int n) {
  for (int r = 0; r < n; r++)
    for (int i = 0; i + 1 < n; i++)
      if (p[i].cell > p[i + 1].cell) {
        particle t;
        memcpy(&t, &p[i], sizeof t), memcpy(&p[i], &p[i + 1], sizeof t), memcpy(&p[i + 1], &t, sizeof t);
      }
}
void erased(particle *p, int n) { memmove(p, p + 1, (n - 1) * sizeof *p), p[n - 1].cell = 7; }
void members(particle *p, int n) { for (int i = 0; i + 1 < n; i++) memcpy(&p[i].spin, &p[i + 1].charge, 8); }
/* the same in memory that is allocated: a member that is accessed tells of those beside it */
typedef struct { int cell; float weight; double charge, spin; } plain;
typedef struct { plain *items; int n; } bag;
static int by_plain_cell(const void *a, const void *b) { return ((const plain *)a)->cell - ((const plain *)b)->cell; }
void sorted_bag(bag *b) { qsort(b->items, b->n, sizeof *b->items, by_plain_cell); }
void sorted_items(plain *p, int n) { qsort(p, n, sizeof *p, by_plain_cell); }
/* pointers behind what is given: their types are known where they are read */
typedef struct { int n; double *from, *to; } pair;
void behind(pair *p) { memcpy(p->to, p->from + 1, p->n * sizeof(double)); }
void again(pair *p) { for (int i = 0; i < 3; i++) memmove(p->to, p->from + 1, 2 * sizeof(double)); }
void rows(double **r) { memcpy(r[0], r[1], 3 * sizeof(double)); }
void swapped(double **r) {
  double t[3];
  memcpy(t, r[0], sizeof t), memcpy(r[0], r[1], sizeof t), memcpy(r[1], t, sizeof t);
}

static void near(const char *name, double got, double want) {
  if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) printf("%s: got %g, not %g\n", name, got, want), failed = 1;
}
#define N 4
static const int cells[N] = {3, 1, 2, 0};
static void fill(particle *p, double k) {
  for (int i = 0; i < N; i++) p[i] = (particle){cells[i], k * i + 1, k * i * i - 2, "abc", sin(k * i)};
}
static void cleared(particle *p) { for (int i = 0; i < N; i++) memset(p[i].name, 0, 12), p[i].cell = 0; }
static double product(const particle *a, const particle *b) {
  double s = 0;
  for (int i = 0; i < N; i++) s += a[i].weight * b[i].weight + a[i].charge * b[i].charge + a[i].spin * b[i].spin;
  return s;
}
/* these functions are linear: tangents are what they make of them, and forward and reverse agree */
#define STRUCTS(f) do { \
  particle p[N], d[N], v[N], moved[N], w[N]; \
  fill(p, 1), fill(v, 0.7), fill(moved, 0.7), fill(w, 1.3), fill(d, 0.7), cleared(d), cleared(w); \
  f(moved, N); \
  __enzyme_fwddiff((void *)f, enzyme_dup, p, d, enzyme_const, N); \
  for (int i = 0; i < N; i++) { \
    near(#f " weight", d[i].weight, moved[i].weight), near(#f " charge", d[i].charge, moved[i].charge); \
    near(#f " spin", d[i].spin, moved[i].spin); \
  } \
  double want = product(moved, w); \
  fill(p, 1); \
  __enzyme_autodiff((void *)f, enzyme_dup, p, w, enzyme_const, N); \
  near(#f " reverse", product(v, w), want); \
} while (0)
#define ARRAYS(f, given, shadow) do { \
  double a[3] = {1, 2, 3}, b[4] = {4, 5, 6, 7}, da[3] = {0.1, 0.2, 0.3}, db[4] = {1, 2, 3, 4}; \
  double *table[2] = {a, b}, *dtable[2] = {da, db}; \
  pair p = {2, b, a}, dp = {2, db, da}; \
  (void)table, (void)dtable, (void)p, (void)dp; \
  double want = 0; \
  __enzyme_fwddiff((void *)f, enzyme_dup, given, shadow); \
  double wa[3] = {3, 1, 4}, wb[4] = {1, 5, 9, 2}; \
  for (int i = 0; i < 3; i++) want += da[i] * wa[i]; \
  for (int i = 0; i < 4; i++) want += db[i] * wb[i]; \
  memcpy(da, wa, sizeof da), memcpy(db, wb, sizeof db); \
  __enzyme_autodiff((void *)f, enzyme_dup, given, shadow); \
  double va[3] = {0.1, 0.2, 0.3}, vb[4] = {1, 2, 3, 4}, got = 0; \
  for (int i = 0; i < 3; i++) got += va[i] * da[i]; \
  for (int i = 0; i < 4; i++) got += vb[i] * db[i]; \
  near(#f, got, want); \
  if (fabs(da[0] - 3) < 1e-12) printf("%s: nothing moved\n", #f), failed = 1; \
} while (0)
static plain *made(int n) {
  plain *p = calloc(n, sizeof *p);
  for (int i = 0; i < n; i++) p[i] = (plain){n - i, i + 1, 2 * i, 3 * i + 1};
  return p;
}
static void turned(const char *name, const plain *d, int n) {
  for (int i = 0; i < n; i++) {
    int k = n - 1 - i;
    near(name, d[i].weight, k + 1), near(name, d[i].charge, 2 * k), near(name, d[i].spin, 3 * k + 1);
  }
}
static void allocated(int n) {
  plain *p = made(n), *d = made(n), *v = made(n);
  bag b = {p, n}, db = {d, n}, dv = {v, n};
  __enzyme_fwddiff((void *)sorted_bag, enzyme_dup, &b, &dv), turned("bag forward", v, n);
  free(b.items), b.items = p = made(n);
  __enzyme_autodiff((void *)sorted_bag, enzyme_dup, &b, &db), turned("bag", d, n);
  p = made(n), d = made(n), v = made(n);
  __enzyme_fwddiff((void *)sorted_items, enzyme_dup, p, v, enzyme_const, n), turned("items forward", v, n);
  p = made(n);
  __enzyme_autodiff((void *)sorted_items, enzyme_dup, p, d, enzyme_const, n), turned("items", d, n);
}
int main(int argc, char **argv) {
  allocated(argc + 3);
  STRUCTS(sorted); STRUCTS(exchanged); STRUCTS(erased); STRUCTS(members);
  ARRAYS(behind, &p, &dp); ARRAYS(again, &p, &dp); ARRAYS(rows, table, dtable); ARRAYS(swapped, table, dtable);
  if (!failed) puts("all right");
  return failed;
}
