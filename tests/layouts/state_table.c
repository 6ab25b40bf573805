/* A parser of few states: tables of what follows which in a struct, a stack of numbers and one of places beside. */
#include <stdlib.h>
#include <string.h>

enum { VALUE, PLUS, TIMES, END };

typedef struct {
  signed char next[3][4];
  double stack[6];
  short marks[5];
  int depth, marked;
  const char *text;
  const double *x;
  double factor[3];
  long n;
} parser;

static int kind_of(char c) { return c == '+' ? PLUS : c == '*' ? TIMES : c ? VALUE : END; }

static void reduce(parser *p, int to) {
  while (p->depth > to + 1) {
    p->depth--;
    p->stack[p->depth - 1] = p->stack[p->depth - 1] * p->stack[p->depth] + 0.1;
  }
}

static double parse(parser *p) {
  int state = 0;
  double sum = 0;
  for (int at = 0;; at++) {
    int kind = kind_of(p->text[at]);
    state = p->next[state][kind];
    if (kind == VALUE) p->stack[p->depth++] = p->x[(p->text[at] - 'a') % p->n] * p->factor[state];
    if (kind == PLUS || kind == END) {
      reduce(p, 0);
      sum += p->stack[0];
      p->marks[p->marked++] = (short)at;
      p->factor[state] *= 1.1;
      p->depth = 0;
    }
    if (kind == END) return sum * p->marks[p->marked - 2];
  }
}

double loss(const double *x, long n) {
  static const signed char next[3][4] = {{1, 0, 0, 0}, {1, 0, 2, 0}, {1, 2, 2, 0}};
  parser *p = calloc(1, sizeof *p);
  memcpy(p->next, next, sizeof next);
  for (int i = 0; i < 3; i++) p->factor[i] = 1 - 0.2 * i;
  p->text = "a*b+c*d*e+f*a+b";
  p->x = x;
  p->n = n;
  double sum = parse(p);
  free(p);
  return sum;
}
