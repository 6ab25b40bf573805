#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
/* Lua-like registers: TValue arrays, upvalues, tables with array part */
typedef union { void *p; double n; int b; } Val;
typedef struct { Val v; int tt; } TValue;
typedef struct Table { TValue *arr; int size, used; struct Table *meta; } Table;
typedef struct { TValue *base, *top; TValue slots[16]; Table *tables; } State;
#define setnum(o, x) do { TValue *o_ = (o); o_->v.n = (x); o_->tt = 3; } while (0)
#define settab(o, t) do { TValue *o_ = (o); o_->v.p = (t); o_->tt = 5; } while (0)
#define setobj(a, b) do { const TValue *b_ = (b); TValue *a_ = (a); a_->v = b_->v; a_->tt = b_->tt; } while (0)
static Table *newtable(State *S) { Table *t = calloc(1, sizeof *t); t->meta = S->tables; S->tables = t; return t; }
static void tset(Table *t, int i, const TValue *v) { if (i >= t->size) { int s = t->size ? 2 * t->size : 2; while (s <= i) s *= 2; t->arr = realloc(t->arr, s * sizeof(TValue)); for (int k = t->size; k < s; k++) { t->arr[k].tt = 0; t->arr[k].v.b = 0; } t->size = s; } setobj(&t->arr[i], v); if (i >= t->used) t->used = i + 1; }
enum { LOADK, MOVE, NEWT, SETT, GETT, ADD, MUL, LT, JMP, FOR, RET };
typedef struct { unsigned char op, a, b, c; } Ins;
static double run(State *S, const Ins *code, const double *k) {
  TValue *R = S->base = S->slots; const Ins *pc = code;
  for (;;) {
    Ins i = *pc++; TValue *ra = R + i.a, *rb = R + i.b, *rc = R + i.c;
    switch (i.op) {
      case LOADK: setnum(ra, k[i.b]); break;
      case MOVE: setobj(ra, rb); break;
      case NEWT: settab(ra, newtable(S)); break;
      case SETT: tset((Table *)ra->v.p, (int)rb->v.n, rc); break;
      case GETT: { Table *t = rb->v.p; int at = (int)rc->v.n; if (at < t->used) setobj(ra, &t->arr[at]); else ra->tt = 0; break; }
      case ADD: if (rb->tt == 3 && rc->tt == 3) setnum(ra, rb->v.n + rc->v.n); else return -1; break;
      case MUL: if (rb->tt == 3 && rc->tt == 3) setnum(ra, rb->v.n * rc->v.n); else return -2; break;
      case LT: if (!(rb->v.n < rc->v.n)) pc++; break;
      case JMP: pc = code + i.a; break;
      case RET: return ra->v.n;
      default: return 0;
    }
  }
}
double loss(const double *x, long n) {
  static const Ins code[] = {
    {NEWT, 0}, {LOADK, 1, 6}, {LOADK, 2, 7}, {LOADK, 3, 8}, {LOADK, 4, 0},
    /*5*/ {MUL, 5, 4, 4}, {SETT, 0, 1, 5}, {ADD, 4, 4, 3}, {MUL, 4, 4, 9}, {ADD, 1, 1, 3}, {LT, 0, 1, 2}, {JMP, 5},
    {NEWT, 6}, {LOADK, 7, 6}, {SETT, 6, 7, 0}, {LOADK, 7, 8}, {SETT, 6, 7, 4}, {LOADK, 7, 6}, {GETT, 8, 6, 7}, {MOVE, 0, 8}, {MOVE, 8, 4},
    {LOADK, 1, 6}, {LOADK, 10, 6},
    /*23*/ {GETT, 5, 0, 1}, {MUL, 5, 5, 8}, {ADD, 10, 10, 5}, {ADD, 1, 1, 3}, {LT, 0, 1, 2}, {JMP, 23},
    {LOADK, 7, 8}, {GETT, 5, 6, 7}, {ADD, 10, 10, 5}, {RET, 10}};
  double k[9]; for (int i = 0; i < 6; i++) k[i] = x[i % n]; k[6] = 0; k[7] = 4; k[8] = 1;
  State *S = calloc(1, sizeof *S); setnum(&S->slots[9], x[1] * 0.7);
  double r = run(S, code, k);
  while (S->tables) { Table *t = S->tables; S->tables = t->meta; free(t->arr); free(t); }
  free(S); return r * x[3] + x[2];
}
