"""Pointers in the memory of very many objects: stored to all of them, read from all of them, in a time that their
number does not multiply."""

from __future__ import annotations

import pytest
from analysed import all_of, facts_of, named

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.held_pointers import HeldPointers
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.spots import Place, Spots
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir import types as ty


def _many(objects: int) -> str:
    """A table of pointers to so many objects; what is read there at an unknown index is stored to and read from. One of
    the objects is written at another place as well, under its own name."""
    rows = [
        f"  %o{k} = call ptr @malloc(i64 64)\n  %t{k} = getelementptr ptr, ptr %t, i64 {k}\n"
        f"  store ptr %o{k}, ptr %t{k}\n"
        for k in range(objects)
    ]
    return (
        "declare ptr @malloc(i64)\ndefine void @f(ptr %x, i64 %i, i64 %j) {\n"
        f"  %t = alloca [{objects} x ptr]\n"
        + "".join(rows)
        + """
  %ai = getelementptr ptr, ptr %t, i64 %i
  %aj = getelementptr ptr, ptr %t, i64 %j
  %p = load ptr, ptr %ai
  %q = load ptr, ptr %aj
  %p16 = getelementptr i8, ptr %p, i64 16
  %inside = getelementptr i8, ptr %o3, i64 40
  store ptr %inside, ptr %p16
  %one = getelementptr i8, ptr %o5, i64 48
  %other = getelementptr i8, ptr %o4, i64 24
  store ptr %other, ptr %one
  %q16 = getelementptr i8, ptr %q, i64 16
  %far = load ptr, ptr %q16
  %q48 = getelementptr i8, ptr %q, i64 48
  %near = load ptr, ptr %q48
  %own = getelementptr i8, ptr %o7, i64 16
  %same = load ptr, ptr %own
  %v = load double, ptr %x
  store double %v, ptr %far
  store double %v, ptr %near
  store double %v, ptr %same
  ret void
}
"""
    )


def _places(facts: Facts, name: str) -> dict[str, Offsets]:
    spots = facts.types.ranges.places(named(facts.root, name))
    return {(facts.pointers.objects[bit].site or facts.root).name or "": places for bit, places in spots.items()}


def test_what_is_stored_through_a_pointer_to_many_is_read_from_each_and_from_all() -> None:
    facts = facts_of(_many(60), "f", {0})
    far, near, same = (_places(facts, name) for name in ("far", "near", "same"))
    assert far["o3"] == same["o3"] == Offsets(40)
    assert near["o4"] == Offsets(24)
    assert "o4" not in same


def test_the_kinds_of_very_many_objects_are_those_of_each() -> None:
    facts = facts_of(_many(60), "f", {0})
    (store,) = [i for i in all_of(facts, "store") if i.operands[1] is named(facts.root, "same")]
    assert facts.types.access(store.operands[1], 8) == ((0, ty.F64),)


def test_stores_to_many_do_not_go_through_them_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    original = HeldPointers.keep

    def keep(self: HeldPointers, region: int, place: Place, spots: Spots) -> None:
        kept.append(region)
        original(self, region, place, spots)

    monkeypatch.setattr(HeldPointers, "keep", keep)
    counts = []
    for objects in (60, 240):
        kept.clear()
        facts = facts_of(_many(objects), "f", {0})
        table = facts.pointers.object_of[named(facts.root, "t")].index
        counts.append(sum(region != table for region in kept))
    assert counts[0] == counts[1]


def test_beyond_a_number_of_sets_one_of_all_objects_is_right_as_well(monkeypatch) -> None:
    monkeypatch.setattr("irgrad.engine.analyses.memory.held_pointers._MOST_SETS", 0)
    facts = facts_of(_many(60), "f", {0})
    pointers = Pointers(facts.module, facts.root)
    ranges = Ranges(pointers)
    held = ranges.spots.held
    assert [row.partition(":")[0] for row in ranges.cheaper] == ["objects"]
    every = (1 << len(pointers.objects)) - 1
    (heap,) = {o.index for o in pointers.objects if o.kind == "heap" and o.site is named(facts.root, "o9")}
    assert held.regions(every) == held.regions(every & ~1)
    assert held.regions(1 << heap) == (heap,)
    assert ranges.places(named(facts.root, "far"))[pointers.object_of[named(facts.root, "o3")].index] == Offsets(40)


@pytest.mark.parametrize("objects", [12, 60])
def test_who_has_read_a_region_is_given_what_is_new(objects: int) -> None:
    facts = facts_of(_many(objects), "f", {0})
    held, number = facts.types.ranges.spots.held, {obj.site: obj.index for obj in facts.pointers.objects}
    one = number[named(facts.root, "o5")]
    (everywhere, *_) = held.regions(facts.pointers.of(named(facts.root, "q")))
    place, spots = (Offsets(56), None), {one: Offsets(32)}
    read: dict[tuple[int, int], int] = {}
    assert list(held.stored(one, read)) == list(held.stored(one)) != []
    assert list(held.stored(one, read)) == []
    held.keep(one, place, spots)
    assert list(held.stored(one, read)) == [(place, spots)]
    if everywhere < 0:
        list(held.stored(one, read)), list(held.stored(everywhere, read))
        held.keep(everywhere, place, {one: Offsets(40)})
        joined = {one: Offsets(32, ((8, 1),))}
        assert list(held.stored(one, read)) == [(place, {one: Offsets(40)})]  # of the set that it is in
        assert list(held.stored(everywhere, read)) == [(place, joined)]
    assert (objects > 12) == (everywhere < 0)


def test_what_many_places_hold_alike_is_one_object() -> None:
    facts = facts_of(_many(12), "f", {0})
    held, one = facts.types.ranges.spots.held, facts.pointers.object_of[named(facts.root, "o5")].index
    for at in (8, 24):
        held.keep(one, (Offsets(at), None), {one: Offsets(32)})
    first, second = (spots for (where, _), spots in held.stored(one) if where in (Offsets(8), Offsets(24)))
    assert first is second
    held.keep(one, (Offsets(8), None), {one: Offsets(40)})
    assert [spots for (where, _), spots in held.stored(one) if where == Offsets(24)] == [{one: Offsets(32)}]
