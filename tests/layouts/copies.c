/* Structs of ints, floats, doubles and pointers copied by member, as a whole, by memcpy and byte by byte. */
#include <stdlib.h>
#include <string.h>
typedef struct { int id; float f; double d; const double *src; short s[3]; char c; double tail[2]; } mixed;
static void bytes(void *to, const void *from, size_t n) { char *a = to; const char *b = from; while (n--) *a++ = *b++; }
double loss(const double *x, long n) {
  mixed a = {1, (float)x[0], x[1], x, {1, 2, 3}, 'c', {x[0] * x[1], x[1]}}, b, *c = malloc(sizeof *c), d[2];
  b = a; b.d *= 2; b.f += (float)x[1];
  memcpy(c, &b, sizeof b); c->tail[1] *= c->d;
  bytes(&d[0], c, sizeof *c); d[0].id = 4; d[0].tail[0] *= 3;
  d[1] = d[0]; d[1].src++;
  double s = a.d + b.f * b.d + c->tail[1] * c->id + d[0].tail[0] * d[0].id + *d[1].src * d[1].d + d[1].s[2] * d[1].f;
  free(c);
  return s * (n > 0);
}
