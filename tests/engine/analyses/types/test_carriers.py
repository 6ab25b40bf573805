"""Integers that carry packed floats."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.types.carriers import integers_in
from irgrad.engine.ir.types import F32, F64, I8, I32, I64, array, struct

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


STRUCTS = """
define internal { i64, i8 } @made(ptr %x) {
entry:
  %d = load double, ptr %x
  %bits = bitcast double %d to i64
  %first = insertvalue { i64, i8 } poison, i64 %bits, 0
  %whole = insertvalue { i64, i8 } %first, i8 1, 1
  ret { i64, i8 } %whole
}
define void @f(ptr noalias %x, ptr noalias %y, i1 %c) {
entry:
  %both = call { i64, i8 } @made(ptr %x)
  %kept = select i1 %c, { i64, i8 } %both, { i64, i8 } zeroinitializer
  %part = extractvalue { i64, i8 } %kept, 0
  store i64 %part, ptr %y
  ret void
}
"""


def test_integers_in_structs_that_travel_through_calls() -> None:
    facts = facts_of(STRUCTS, "f", {0, 1})
    part = named(facts.root, "part")
    assert facts.types.carries(part) is F64
    assert facts.types.access(facts.root.args[1], 8) == ((0, F64),)
    assert facts.types.carriers.floats(named(facts.root, "both")) == {F64}
    assert facts.activity.value(part)


def test_places_of_integers_in_types() -> None:
    kind = struct((I64, array(2, struct((F64, I32))), I8))
    assert integers_in(kind) == [((0,), I64), ((1, 0, 1), I32), ((1, 1, 1), I32)]
    assert integers_in(array(100, I64)) == []
    assert integers_in(F64) == []


@pytest.mark.parametrize("differentiated", [False, True])
def test_integers_beside_numbers_are_active_by_themselves(differentiated: bool) -> None:
    text = """
define internal { double, i64, i64 } @made(ptr %x, ptr %k, i1 %c) {
entry:
  %d = load double, ptr %x
  %n = load i64, ptr %k
  %first = insertvalue { double, i64, i64 } poison, double %d, 0
  %one = insertvalue { double, i64, i64 } %first, i64 1, 1
  %two = insertvalue { double, i64, i64 } %first, i64 2, 1
  %which = select i1 %c, { double, i64, i64 } %one, { double, i64, i64 } %two
  %whole = insertvalue { double, i64, i64 } %which, i64 %n, 2
  ret { double, i64, i64 } %whole
}
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %k, i1 %c) {
entry:
  %both = call { double, i64, i64 } @made(ptr %x, ptr %k, i1 %c)
  %number = extractvalue { double, i64, i64 } %both, 0
  %tag = extractvalue { double, i64, i64 } %both, 1
  %odd = extractvalue { double, i64, i64 } %both, 2
  store double %number, ptr %y
  %next = getelementptr i8, ptr %y, i64 8
  store i64 %tag, ptr %next
  %last = getelementptr i8, ptr %y, i64 16
  store i64 %odd, ptr %last
  ret void
}
"""
    facts = facts_of(text, "f", {0, 1, 2} if differentiated else {0, 1})
    assert facts.types.carriers.origins(named(facts.root, "tag")) == []
    assert [str(v.name) for v in facts.types.carriers.origins(named(facts.root, "odd"))] == ["n"]
    active = {name for name in ("number", "tag", "odd") if facts.activity.value(named(facts.root, name))}
    assert active == ({"number", "odd"} if differentiated else {"number"})


def test_a_counter_stays_a_number_in_memory_of_floats() -> None:
    """It is stored where floats are stored at another time, and where it comes from stays an integer too."""
    text = """
define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %size) {
entry:
  %n = load i64, ptr %size
  %even = and i64 %n, -2
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %even, %loop ], [ %next, %more ]
  %at = getelementptr double, ptr %w, i64 %i
  %float = load double, ptr %x
  store double %float, ptr %at
  store i64 %i, ptr %at
  %again = icmp slt i64 %i, 3
  br i1 %again, label %loop, label %more
more:
  %next = add i64 %i, 1
  %there = getelementptr double, ptr %x, i64 %next
  %word = load i64, ptr %there
  store i64 %word, ptr %at
  %go = icmp slt i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  ret void
}
"""
    facts = facts_of(text, "f", {0, 1})
    carriers = facts.types.carriers
    assert not carriers.floats(named(facts.root, "i")) and not carriers.floats(named(facts.root, "n"))
    assert carriers.floats(named(facts.root, "word")) == {F64}
    assert facts.types.access(facts.root.args[2], 8) == ((0, INT),)
