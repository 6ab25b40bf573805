"""Records of pointers are split into their fields."""

from __future__ import annotations

from analysed import facts_of_c

from irgrad.engine.analyses.facts import Facts
from irgrad.engine.analyses.kinds import INT
from irgrad.engine.analyses.objects import Object


def obj(facts: Facts, kind: str, number: int = 0) -> Object:
    """The numbered object of a kind."""
    return [o for o in facts.pointers.objects if o.kind == kind][number]


CONTEXT = """
struct ctx { double *x; const double *coef; int *idx; double **rows; int n; double scale; };
__attribute__((noinline)) static double eval(const struct ctx *c) {
  double s = 0;
  for (int i = 0; i < c->n; i++) s += c->x[c->idx[i]] * c->coef[i] * c->rows[i][0];
  return s * c->scale;
}
__attribute__((noinline)) static double outer(const struct ctx *c, struct ctx *t) { *t = *c; t->n = 5; return eval(t); }
void f(double *x, double *coef, int *idx, double *scale, double *out) {
  double *rows[10];
  for (int i = 0; i < 10; i++) rows[i] = x + i;
  struct ctx c = { x, coef, idx, rows, 10, *scale }, t;
  *out = outer(&c, &t);
}
"""


def test_a_struct_of_pointers_does_not_mix_its_fields() -> None:
    facts = facts_of_c(CONTEXT, "f", {0, 3, 4})
    assert facts.activity.scratch == set()
    assert not facts.activity.shadowed(obj(facts, "argument", 1))
    assert not facts.activity.shadowed(obj(facts, "argument", 2))
    assert sum(facts.activity.holds_pointers(o) for o in facts.pointers.objects if o.kind == "alloca") >= 2
    assert facts.types.region(facts.root.args[2]).fields == ((0, INT),)
