"""Offsets through loops, calls and arithmetic."""

from __future__ import annotations

import pytest
from analysed import all_of, facts_of, facts_of_c, named

from irgrad.engine.analyses.memory.strided_sets import Offsets, contains

NESTED = """
struct body { double at[3]; int kind; };
void f(struct body *b, int *n, double *out) {
  double s = 0;
  for (int i = 0; i < *n; i++) for (int k = 0; k < 3; k++) s += b[i].at[k] * b[i].at[k];
  *out = s;
}
"""


def test_inner_loops_with_constant_trips_are_bounded() -> None:
    facts = facts_of_c(NESTED, "f", {0, 2})
    load = next(i for i in all_of(facts, "load") if i.type.is_fp)
    places = facts.types.ranges.offsets(load.operands[0])
    assert places.stride == 32
    assert {x % 32 for x in places.expand()} == {0, 8, 16}


ROUNDED = """
define void @f(ptr noalias %x, ptr noalias %out) {
  %a = alloca [8 x double], align 32
  %b = alloca [8 x double], align 8
  %c = load i1, ptr %x
  %s = select i1 %c, ptr %a, ptr %b
  %p = getelementptr i8, ptr %s, i64 39
  %pi = ptrtoint ptr %p to i64
  %down = and i64 %pi, -16
  %by = sub i64 %down, %pi
  %q = getelementptr i8, ptr %p, i64 %by
  %v = load double, ptr %q
  store double %v, ptr %out
  ret void
}
"""


def test_a_pointer_that_is_rounded_down() -> None:
    facts = facts_of(ROUNDED, "f", {0, 1})
    a, b = (facts.pointers.object_of[named(facts.root, name)].index for name in "ab")
    places = facts.types.ranges.places(named(facts.root, "q"))
    assert places[a] == Offsets(32)
    assert places[b].expand() == tuple(range(24, 40))


QUOTIENTS = """
define void @f(ptr noalias %x, ptr noalias %out, i64 %n) {
  %v = load double, ptr %x
  %small = and i64 %n, 7
  %less = sdiv i64 %small, -2
  %fewer = sdiv i64 %small, 2
  %left = srem i64 %small, -3
  store double %v, ptr %out
  ret void
}
"""


def test_quotients_that_may_be_negative() -> None:
    facts = facts_of(QUOTIENTS, "f", {0, 1})
    ranges = facts.types.ranges
    assert ranges.offsets(named(facts.root, "less")).below
    assert not ranges.offsets(named(facts.root, "fewer")).below
    assert not ranges.offsets(named(facts.root, "left")).below


MASK_FIRST = """
define void @f(ptr noalias %x, ptr noalias %out) {
  %a = alloca [8 x double], align 32
  %p = getelementptr i8, ptr %a, i64 24
  %pi = ptrtoint ptr %p to i64
  %down = and i64 -16, %pi
  %q = inttoptr i64 %down to ptr
  %v = load double, ptr %q
  store double %v, ptr %out
  ret void
}
"""


def test_a_mask_may_stand_first() -> None:
    facts = facts_of(MASK_FIRST, "f", {0, 1})
    index = facts.pointers.object_of[named(facts.root, "a")].index
    assert facts.types.ranges.places(named(facts.root, "q"))[index].stride == 16

BOUNDED = """
define void @f(ptr noalias %x, ptr noalias %out) {
  %a = alloca [64 x double], align 8
  %n = load i64, ptr %x
  %natural = lshr i64 %n, 1
  %c = load i8, ptr %x
  %signed = srem i64 %n, 3
  %plain = srem i64 %natural, 3
  %least = call i64 @llvm.umin.i64(i64 %n, i64 5)
  %byte = zext i8 %c to i64
  %p = getelementptr double, ptr %a, i64 %signed
  %q = getelementptr double, ptr %a, i64 %plain
  %r = getelementptr double, ptr %a, i64 %least
  %s = getelementptr double, ptr %a, i64 %byte
  %v = load double, ptr %p
  store double %v, ptr %out
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
"""


def test_remainders_least_ones_and_bytes_have_bounds() -> None:
    facts = facts_of(BOUNDED, "f", {0, 1})
    a = facts.pointers.object_of[named(facts.root, "a")].index
    found = {name: facts.types.ranges.places(named(facts.root, name))[a] for name in "pqrs"}
    assert found == {"p": Offsets(-16, ((8, 4),)), "q": Offsets(0, ((8, 2),)), "r": Offsets(0, ((8, 5),)),
                     "s": Offsets(0, ((8, 255),))}  # fmt: skip


MEMBERS = """
define internal void @resize(ptr %m, i64 %n) noinline {
  %bytes = shl i64 %n, 3
  %p = call ptr @malloc(i64 %bytes)
  store ptr %p, ptr %m, align 8
  %rows = getelementptr i8, ptr %m, i64 8
  store i64 %n, ptr %rows, align 8
  ret void
}
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %out) {
  %solver = alloca [400 x i8], align 8
  %count = load i64, ptr %n
  CALLS
  %r = getelementptr i8, ptr %solver, i64 8
  %rows = load i64, ptr %r, align 8
  %c = getelementptr i8, ptr %solver, i64 32
  %last = load i64, ptr %c, align 8
  %distance = sub i64 %rows, %last
  %q = getelementptr double, ptr %x, i64 %distance
  %v = load double, ptr %q
  store double %v, ptr %out
  ret void
}
declare noalias ptr @malloc(i64) allockind("alloc,uninitialized") allocsize(0)
"""


@pytest.mark.parametrize("places", [(0, 24, 120), (0, 24, 120, 144, 304, 344), tuple(k * k * 24 for k in range(5))])
def test_one_function_for_members_at_irregular_distances(places: tuple[int, ...]) -> None:
    """It writes a pointer to the first word of each, and to no other: not where the integers are."""
    calls = "\n".join(
        f"%m{at} = getelementptr i8, ptr %solver, i64 {at}\ncall void @resize(ptr %m{at}, i64 %count)" for at in places
    )
    facts = facts_of(MEMBERS.replace("CALLS", calls), "f", {0, 2})
    resize = facts.module.functions["resize"]
    (found,) = facts.types.ranges.places(resize.args[0]).values()
    assert found.expand() == places
    (rows,) = facts.types.ranges.places(named(resize, "rows")).values()
    assert rows.expand() == tuple(at + 8 for at in places)
    assert not facts.pointers.of(named(facts.root, "rows"))


def test_many_members_are_one_array() -> None:
    places = [k * k * 8 for k in range(40)]
    calls = "\n".join(
        f"%m{at} = getelementptr i8, ptr %solver, i64 {at}\ncall void @resize(ptr %m{at}, i64 %count)" for at in places
    )
    facts = facts_of(MEMBERS.replace("CALLS", calls).replace("[400 x", "[20000 x"), "f", {0, 2})
    resize = facts.module.functions["resize"]
    (found,) = facts.types.ranges.places(resize.args[0]).values()
    assert all(contains(found, Offsets(at)) for at in places)
