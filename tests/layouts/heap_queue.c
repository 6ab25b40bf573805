/* A priority queue of structs ordered by an active key. */
#include <stdlib.h>
typedef struct { double key; int owner; double payload; } item;
typedef struct { item *items; int count, room; } queue;
static void push(queue *q, item e) {
  if (q->count == q->room) { q->room = q->room ? 2 * q->room : 2; q->items = realloc(q->items, q->room * sizeof(item)); }
  int i = q->count++;
  while (i && q->items[(i - 1) / 2].key > e.key) { q->items[i] = q->items[(i - 1) / 2]; i = (i - 1) / 2; }
  q->items[i] = e;
}
static item pop(queue *q) {
  item top = q->items[0], last = q->items[--q->count];
  int i = 0;
  for (;;) {
    int c = 2 * i + 1;
    if (c >= q->count) break;
    if (c + 1 < q->count && q->items[c + 1].key < q->items[c].key) c++;
    if (q->items[c].key >= last.key) break;
    q->items[i] = q->items[c]; i = c;
  }
  q->items[i] = last;
  return top;
}
double loss(const double *x, long n) {
  queue q = {0, 0, 0};
  for (long i = 0; i < n; i++) { item e = {x[i], (int)i, x[i] * x[(i + 1) % n]}; push(&q, e); }
  double s = 0, w = 1;
  while (q.count) { item e = pop(&q); s += w * e.payload * (e.owner + 1) + e.key * e.key; w *= 0.7; if (e.owner == 1 && w > 0.2) { e.owner = 0; e.key += 2; push(&q, e); } }
  free(q.items);
  return s;
}
