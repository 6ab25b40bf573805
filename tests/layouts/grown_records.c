/* A header and the records behind it in one block that grows, by realloc and by a copy of all of it. */
#include <stdlib.h>
#include <string.h>
typedef struct {
  double a;
  int k;
  double b;
} record;
typedef struct {
  double scale;
  long n;
  record items[];
} records;
typedef struct {
  double scale;
  double *factor;
  record items[];
} scaled;
typedef struct {
  long n, room;
  double items[];
} numbers;
static double of_records(const double *x, long n) {
  records *r = malloc(sizeof(records) + 2 * sizeof(record));
  long room = 2;
  r->n = 0;
  r->scale = x[0];
  for (long i = 0; i < n; i++) {
    if (r->n == room) r = realloc(r, sizeof(records) + (room *= 2) * sizeof(record));
    r->items[r->n].a = x[i];
    r->items[r->n].k = i;
    r->items[r->n].b = x[i] * r->scale;
    r->n++;
  }
  double s = 0;
  for (long i = 0; i < r->n; i++) s = 0.5 * s + r->items[i].a * r->items[i].k * r->items[i].b;
  free(r);
  return s;
}
static double of_scaled(const double *x, long n) {
  scaled *r = malloc(sizeof(scaled) + 2 * sizeof(record));
  long room = 2, m = 0;
  double u = x[1] * 3;
  r->factor = &u;
  r->scale = x[0];
  for (long i = 0; i < n; i++) {
    if (m == room) r = realloc(r, sizeof(scaled) + (room *= 2) * sizeof(record));
    r->items[m].a = x[i];
    r->items[m].k = i;
    r->items[m].b = x[i] * r->scale * *r->factor;
    m++;
  }
  double s = 0;
  for (long i = 0; i < m; i++) s = 0.5 * s + r->items[i].a * r->items[i].k * r->items[i].b;
  free(r);
  return s;
}
static double of_numbers(const double *x, long n) {
  numbers *v = malloc(sizeof(numbers) + 2 * sizeof(double));
  v->n = 0;
  v->room = 2;
  for (long i = 0; i < n; i++) {
    if (v->n == v->room) {
      numbers *w = malloc(sizeof(numbers) + v->room * 2 * sizeof(double));
      memcpy(w, v, sizeof(numbers) + v->n * sizeof(double));
      w->room *= 2;
      free(v);
      v = w;
    }
    v->items[v->n++] = x[i] * x[i];
  }
  double s = 0;
  for (long i = 0; i < v->n; i++) s = 0.5 * s + v->items[i] * v->items[(i + 1) % v->n];
  free(v);
  return s;
}
double loss(const double *x, long n) { return of_records(x, n) + of_scaled(x, n) + of_numbers(x, n); }
