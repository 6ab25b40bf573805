/* Open addressing, keys, flags and values in one struct; the table grows and is filled again. */
#include <stdlib.h>
typedef struct { long key; char used; double value; } cell;
typedef struct { cell *cells; long room, count; } map;
static double *find(map *m, long key);
static void grow(map *m) {
  map old = *m;
  m->room = old.room ? 2 * old.room : 2; m->count = 0;
  m->cells = calloc(m->room, sizeof(cell));
  for (long i = 0; i < old.room; i++) if (old.cells[i].used) *find(m, old.cells[i].key) = old.cells[i].value;
  free(old.cells);
}
static double *find(map *m, long key) {
  if (2 * m->count >= m->room) grow(m);
  long at = (key * 7919) % m->room;
  while (m->cells[at].used && m->cells[at].key != key) at = (at + 1) % m->room;
  if (!m->cells[at].used) { m->cells[at].used = 1; m->cells[at].key = key; m->cells[at].value = 0; m->count++; }
  return &m->cells[at].value;
}
double loss(const double *x, long n) {
  map m = {0, 0, 0};
  for (long i = 0; i < 3 * n; i++) *find(&m, (i * i) % (n + 2)) += x[i % n] * (i + 1);
  double s = 0;
  for (long k = 0; k < n + 2; k++) { double v = *find(&m, k); s += v * v * (k + 1); }
  free(m.cells);
  return s;
}
