"""Integers that carry packed floats."""

from __future__ import annotations

from analysed import facts_of, named

from irgrad.engine.ir.types import F32

PACKED = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %both = load i64, ptr %x
  %low = trunc i64 %both to i32
  %a = bitcast i32 %low to float
  %shifted = lshr i64 %both, 32
  %high = trunc nuw i64 %shifted to i32
  %b = bitcast i32 %high to float
  %s = fadd float %a, %b
  %back = bitcast float %s to i32
  %wide = zext i32 %back to i64
  %up = shl nuw i64 %wide, 32
  %joined = or disjoint i64 %up, %wide
  store i64 %joined, ptr %y
  ret void
}
"""


def test_packed_pairs_of_floats() -> None:
    facts = facts_of(PACKED, "f", {0, 1})
    pair = ((0, F32), (4, F32))
    assert facts.types.carries(named(facts.root, "both")) == pair
    assert facts.types.carries(named(facts.root, "low")) is F32
    assert facts.types.carries(named(facts.root, "high")) is F32
    assert facts.types.carries(named(facts.root, "wide")) == ((0, F32),)
    assert facts.types.carries(named(facts.root, "joined")) == pair
    assert facts.types.access(facts.root.args[0], 8) == pair
    assert facts.types.access(facts.root.args[1], 8) == pair
