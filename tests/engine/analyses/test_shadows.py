"""Pointers that need shadows, and the memory they bring with them."""

from __future__ import annotations

from analysed import facts_of, named

from irgrad.engine.analyses.facts import Facts
from irgrad.engine.analyses.objects import Object


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
