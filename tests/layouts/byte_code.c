/* A byte code machine: values are numbers, lists or strings, passed by value. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
enum { NUMBER, LIST, STRING };
struct List;
struct String { long length; char text[16]; };
typedef struct { int tag; union { double number; struct List *list; struct String *s; } as; } Value;
struct List { int count, room; Value *items; };
enum {
  OP_CONST, OP_LOAD, OP_STORE, OP_ADD, OP_MUL, OP_SIN, OP_NEW, OP_APPEND, OP_SUM, OP_LESS, OP_JUMP_IF, OP_JUMP,
  OP_TEXT, OP_LENGTH, OP_DUP, OP_SWAP, OP_HALT
};
typedef struct { Value stack[64]; int top; Value vars[8]; } Machine;
static Value number(double d) { Value v; v.tag = NUMBER; v.as.number = d; return v; }
static Value list(struct List *l) { Value v; v.tag = LIST; v.as.list = l; return v; }
static Value text(struct String *l) { Value v; v.tag = STRING; v.as.s = l; return v; }
static void push(Machine *m, Value v) { m->stack[m->top++] = v; }
static Value pop(Machine *m) { return m->stack[--m->top]; }
static void append(struct List *l, Value v) {
  if (l->count == l->room) {
    l->room = l->room ? 2 * l->room : 2;
    l->items = realloc(l->items, l->room * sizeof(Value));
  }
  l->items[l->count++] = v;
}
static Value sum(Value v) {
  if (v.tag == NUMBER) return v;
  double s = 0;
  if (v.tag == LIST)
    for (int i = 0; i < v.as.list->count; i++) {
      Value e = sum(v.as.list->items[i]);
      s += e.as.number * (i + 1);
    }
  return number(s);
}
static Value run(Machine *m, const int *code, const double *constants) {
  for (int at = 0;;) switch (code[at++]) {
    case OP_CONST: push(m, number(constants[code[at++]])); break;
    case OP_LOAD: push(m, m->vars[code[at++]]); break;
    case OP_STORE: m->vars[code[at++]] = pop(m); break;
    case OP_ADD: { Value b = pop(m), a = pop(m); push(m, number(a.as.number + b.as.number)); break; }
    case OP_MUL: { Value b = pop(m), a = pop(m); push(m, number(a.as.number * b.as.number)); break; }
    case OP_SIN: { Value a = pop(m); push(m, number(sin(a.as.number))); break; }
    case OP_NEW: { struct List *l = calloc(1, sizeof *l); push(m, list(l)); break; }
    case OP_TEXT: { struct String *l = calloc(1, sizeof *l); l->length = code[at++]; push(m, text(l)); break; }
    case OP_LENGTH: {
      Value a = pop(m);
      push(m, number(a.tag == STRING ? a.as.s->length : a.as.list->count));
      break;
    }
    case OP_APPEND: { Value b = pop(m), a = pop(m); append(a.as.list, b); push(m, a); break; }
    case OP_SUM: push(m, sum(pop(m))); break;
    case OP_LESS: { Value b = pop(m), a = pop(m); push(m, number(a.as.number < b.as.number)); break; }
    case OP_JUMP_IF: { int to = code[at++]; if (pop(m).as.number != 0) at = to; break; }
    case OP_JUMP: at = code[at]; break;
    case OP_DUP: { Value a = pop(m); push(m, a); push(m, a); break; }
    case OP_SWAP: { Value b = pop(m), a = pop(m); push(m, b); push(m, a); break; }
    case OP_HALT: return pop(m);
  }
}
double loss(const double *x, long n) {
  static const int program[] = {
    OP_NEW, OP_CONST, 0, OP_APPEND, OP_CONST, 1, OP_CONST, 2, OP_MUL, OP_APPEND, OP_STORE, 0,
    OP_TEXT, 3, OP_STORE, 1, OP_CONST, 6, OP_STORE, 2,
    /* 20 */ OP_LOAD, 0, OP_CONST, 3, OP_LOAD, 2, OP_MUL, OP_SIN, OP_APPEND, OP_STORE, 0,
    /* 31 */ OP_LOAD, 2, OP_CONST, 7, OP_ADD, OP_DUP, OP_STORE, 2, OP_CONST, 8, OP_LESS, OP_JUMP_IF, 20,
    /* 44 */ OP_NEW, OP_LOAD, 0, OP_APPEND, OP_CONST, 4, OP_SWAP, OP_STORE, 3, OP_STORE, 4,
    OP_LOAD, 3, OP_LOAD, 4, OP_CONST, 5, OP_MUL, OP_APPEND, OP_DUP, OP_SUM, OP_SWAP, OP_LENGTH, OP_MUL,
    OP_LOAD, 1, OP_LENGTH, OP_MUL, OP_HALT };
  double constants[9];
  for (int i = 0; i < 6; i++) constants[i] = x[i % n];
  constants[6] = 0; constants[7] = 1; constants[8] = 5;
  Machine m;
  memset(&m, 0, sizeof m);
  return run(&m, program, constants).as.number;
}
