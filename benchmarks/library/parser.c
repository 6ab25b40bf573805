struct token@ { [int type; int index; double value]! };
struct stack@ { int top; int errors; double values[16]; };
struct parser@ { [const char *text; int at; struct stack@ *stack; const double *x; long n]! };
static double (*const functions@[3])(double) = {{sin|cos|tanh}!, soft, exp};
static struct token@ next@(struct parser@ *p) {
  struct token@ t = {0};
  while (p->text[p->at] == ' ') p->at++;
  char c = p->text[p->at];
  if (!c) return t;
  p->at++;
  if (c >= '0' && c <= '9') {
    t.type = 1;
    t.value = 0.25 * (c - '0');
  } else if (c >= 'a' && c <= 'f') {
    t.type = 2;
    t.index = (c - 'a') % (int)p->n;
    t.value = p->x[t.index];
  } else if (c >= 'A' && c <= 'C') {
    t.type = 3;
    t.index = c - 'A';
  } else {
    t.type = 4;
    t.index = c;
  }
  return t;
}
static void push@(struct stack@ *s, double v) { if (s->top < 16) s->values[s->top++] = v; else s->errors++; }
static double pop@(struct stack@ *s) { return s->top > 0 ? s->values[--s->top] : (s->errors++, 0.0); }
static double run_text@(struct parser@ *p) {
  for (;;) {
    struct token@ t = next@(p);
    double a, b;
    switch (t.type) {
      case 0: return pop@(p->stack);
      case 1: case 2: push@(p->stack, t.value); break;
      case 3: push@(p->stack, functions@[t.index](pop@(p->stack))); break;
      default:
        b = pop@(p->stack);
        a = pop@(p->stack);
        push@(p->stack, t.index == '+' ? a + b : t.index == '*' ? a * b : a - b);
    }
  }
}
double run@(struct engine *e, const double *x, long n) {
  struct parser@ p;
  p.text = "{ab+c*A|a b c * + B d -|abcdef+*+-+ 3 *|e1+ B f 2 * -}!";
  p.at = 0;
  p.x = x;
  p.n = n;
  p.stack = calloc(1, sizeof *p.stack);
  double t = run_text@(&p), u = e->scale;
  if (p.stack->errors) t = 0;
  free(p.stack);
  double s = <t,u>;
  return CALL(s);
}
