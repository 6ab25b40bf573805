struct entry@ { [int key; double value; struct entry@ *next; unsigned hash]! };
struct map@ { [struct entry@ **slots; int size; int used; double sum]! };
static unsigned hash@(int key) { return ((unsigned)key * {2654435761u|40503u|2246822519u}!) >> 7; }
static void map@_init(struct map@ *m, int size) {
  m->slots = calloc(size, sizeof *m->slots);
  m->size = size;
  m->used = 0;
  m->sum = 0;
}
static struct entry@ *map@_find(struct map@ *m, int key) {
  unsigned h = hash@(key);
  for (struct entry@ *e = m->slots[h % m->size]; e; e = e->next)
    if (e->hash == h && e->key == key) return e;
  return NULL;
}
static void map@_grow(struct map@ *m) {
  int size = 2 * m->size;
  struct entry@ **slots = calloc(size, sizeof *slots);
  for (int i = 0; i < m->size; i++)
    for (struct entry@ *e = m->slots[i], *next; e; e = next) {
      next = e->next;
      e->next = slots[e->hash % size];
      slots[e->hash % size] = e;
    }
  free(m->slots);
  m->slots = slots;
  m->size = size;
}
static void map@_add(struct map@ *m, int key, double value) {
  struct entry@ *e = map@_find(m, key);
  if (!e) {
    if (m->used >= m->size) map@_grow(m);
    e = need(sizeof *e);
    e->hash = hash@(key);
    e->key = key;
    e->value = 0;
    e->next = m->slots[e->hash % m->size];
    m->slots[e->hash % m->size] = e;
    m->used++;
  }
  double t = e->value, u = value;
  e->value += <t,u>;
  m->sum += value;
}
static double map@_fold(struct map@ *m, double t) {
  double sum = m->sum;
  for (int i = 0; i < m->size; i++)
    for (struct entry@ *e = m->slots[i]; e; e = e->next) { double u = e->value; sum += <t,u>; }
  return sum;
}
static void map@_free(struct map@ *m) {
  for (int i = 0; i < m->size; i++)
    while (m->slots[i]) {
      struct entry@ *e = m->slots[i];
      m->slots[i] = e->next;
      free(e);
    }
  free(m->slots);
}
double run@(struct engine *e, const double *x, long n) {
  struct map@ m;
  map@_init(&m, {2|4}!);
  for (long i = 0; i < 2 * n; i++) map@_add(&m, (int)(i * {7|5|11}! % {9|13}!), x[i % n] * e->scale);
  double s = map@_fold(&m, x[{0|1|2}!]);
  map@_free(&m);
  return CALL(s);
}
