"""Pointers that need shadows, and the memory they bring with them."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of, named

import irgrad as ig
from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.objects import Object


def obj(facts: Facts, kind: str, number: int = 0) -> Object:
    """The numbered object of a kind."""
    return [o for o in facts.pointers.objects if o.kind == kind][number]


MIX = """
define void @f(ptr noalias %x, ptr noalias %c, ptr noalias %flag, ptr noalias %out) {
entry:
  %k = load i32, ptr %flag
  %t = icmp eq i32 %k, 0
  %p = select i1 %t, ptr %x, ptr %c
  %v = load double, ptr %p
  %w = fmul double %v, %v
  store double %w, ptr %out
  ret void
}
"""


def test_a_constant_argument_that_mixes_with_active_ones_needs_scratch() -> None:
    facts = facts_of(MIX, "f", {0, 3})
    assert facts.activity.scratch == {1}
    assert facts.activity.pointer(named(facts.root, "p"))
    assert not facts.activity.object(obj(facts, "argument", 1))
    assert facts.activity.shadowed(obj(facts, "argument", 1))


SIZES = r"""
struct matrix { double *data; long rows; };
__attribute__((noinline)) static void less(struct matrix *c, struct matrix *a, struct matrix *b) {
  c->data = a->data; c->rows = a->rows - b->rows;
}
double sizes(double *x, long n) {
  struct matrix a = {x, n}, b = {x + 1, n - 3}, c[2];
  less(&c[0], &a, &b); less(&c[1], &a, &c[0]);
  double s = 0;
  for (long i = 0; i < c[0].rows; i++) s += c[0].data[i] * c[0].data[i];
  for (long i = 0; i < c[1].rows; i++) s += 3 * c[1].data[i];
  return s;
}
"""


@pytest.mark.parametrize("flags", [[], ["-fno-strict-aliasing"]])
def test_numbers_beside_pointers_need_no_shadow(flags: list[str]) -> None:
    """The difference of two sizes is no pointer made of two."""
    kernel = ig.load(SIZES, language="c", flags=flags).kernel("sizes", "f64(f64[n] x, i64 n)")
    x = np.arange(1.0, 6.0)
    assert ig.engine.grad(kernel)(x).tolist() == [5.0, 7.0, 6.0, 0.0, 0.0]
    assert ig.engine.jacfwd(kernel)(x).tolist() == [5.0, 7.0, 6.0, 0.0, 0.0]
