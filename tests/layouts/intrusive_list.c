/* Links in the middle of the element, found back by offsetof. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
typedef struct link { struct link *next, *prev; } link_t;
typedef struct { double mass; int id; link_t link; double v[3]; } body;
#define OWNER(p) ((body *)((char *)(p) - offsetof(body, link)))
double loss(const double *x, long n) {
  link_t head = {&head, &head};
  for (long i = 0; i < n; i++) {
    body *b = malloc(sizeof *b);
    b->mass = x[i]; b->id = (int)i;
    for (int k = 0; k < 3; k++) b->v[k] = x[i] * k + 1;
    b->link.prev = head.prev; b->link.next = &head;
    head.prev->next = &b->link; head.prev = &b->link;
  }
  double s = 0;
  for (link_t *l = head.next; l != &head; l = l->next) {
    body *b = OWNER(l);
    s += b->mass * (b->v[0] + sin(b->v[1]) * b->v[2]) * (b->id + 1);
  }
  while (head.next != &head) { link_t *l = head.next; head.next = l->next; free(OWNER(l)); }
  return s;
}
