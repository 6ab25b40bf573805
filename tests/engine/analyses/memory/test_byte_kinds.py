"""Evidence put together."""

from __future__ import annotations

import random

import pytest
from counting_work import peak_bytes

from irgrad.engine.analyses.memory import byte_kinds
from irgrad.engine.analyses.memory.byte_kinds import (
    ACCESS,
    CONFLICT,
    DECLARED,
    INT,
    USED,
    Evidence,
    Layout,
    Record,
    leaves,
    merge,
)
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir import types as ty


def test_leaves_of_a_struct() -> None:
    inner = ty.struct((ty.F32, ty.I32, ty.PTR, ty.vector(2, ty.F64)))
    assert [(at, kind) for at, kind, _ in leaves(inner)] == [
        (0, ty.F32), (4, INT), (8, ty.PTR), (16, ty.F64), (24, ty.F64),
    ]  # fmt: skip


def test_precise_evidence_stands_above_wide_evidence() -> None:
    record = Record()
    record.add(Offsets(0, ((8, None),)), ty.F64, 8, ACCESS)
    record.add(Offsets(24, ((32, None),)), INT, 4, ACCESS)
    assert record.layout(Offsets(0, ((32, None),)), 28) == ((0, ty.F64), (8, ty.F64), (16, ty.F64), (24, INT))


def test_floats_stand_above_arithmetic_and_declared_types() -> None:
    record = Record()
    record.add(Offsets(0), INT, 8, USED)
    record.add(Offsets(0), ty.PTR, 8, DECLARED)
    record.add(Offsets(0), ty.F64, 8, ACCESS)
    assert record.layout(Offsets(0), 8) == ((0, ty.F64),)
    assert record.layout(Offsets(4), 4) == ((0, CONFLICT),)
    record.add(Offsets(0), ty.F32, 4, ACCESS)
    assert any(kind is CONFLICT for _, kind in record.layout(Offsets(0), 8))


def test_evidence_is_looked_at_where_it_is() -> None:
    """Whoever asks how much there is, in a loop over it, must not copy it each time."""
    record = Record()
    for at in range(2000):
        record.add(Offsets(8 * at), ty.F64, 8, ACCESS)
    assert len(record) == len(tuple(record.evidence)) == 2000
    assert peak_bytes(lambda: (len(record), record.evidence)) < 1000


def test_all_lanes_of_vectors_are_as_precise_as_an_unknown_index() -> None:
    """Integers that were each seen at a place of their own in 16 bytes are an array of integers."""
    record = Record()
    for at in range(0, 16, 4):
        record.add(Offsets(at, ((16, None),)), INT, 4, ACCESS)
    record.add(Offsets(0, ((4, None),)), ty.F32, 4, ACCESS)
    assert record.layout(Offsets(0, ((4, None),)), 4) == ((0, ty.F32),)


def test_copies_of_an_unrolled_loop_are_as_precise_as_the_loop() -> None:
    """A float in the first half of each double is no more certain than the double, however the loop was unrolled."""
    record = Record()
    for at in (0, 8):
        record.add(Offsets(at, ((16, None),)), ty.F32, 4, ACCESS)
        record.add(Offsets(at, ((16, None),)), ty.F64, 8, ACCESS)
    assert record.layout(Offsets(0, ((8, None),)), 8)[0] == (0, CONFLICT)


def test_what_is_seen_of_an_array_stays_however_often_a_part_of_it_is_seen() -> None:
    record, whole = Record(), Offsets(0, ((8, None),))
    record.add(whole, ty.F64, 8, ACCESS)
    for at in (0, 8, 16, 24):
        record.add(Offsets(at, ((32, None),)), ty.F64, 8, ACCESS)
        assert record.layout(whole, 8) == ((0, ty.F64),)


def test_memory_used_for_structs_of_one_size_after_another() -> None:
    """Doubles at each place of 24 bytes, seen one by one, do not stand behind the integer that was there before."""
    record, first = Record(), Offsets(0, ((24, None),))
    record.add(first, INT, 4, ACCESS)
    for at in (0, 8, 16):
        record.add(Offsets(at, ((24, None),)), ty.F64, 8, ACCESS)
    assert record.layout(first, 8) == ((0, ty.F64),)
    record.add(Offsets(4, ((24, None),)), ty.F32, 4, ACCESS)
    assert record.layout(first, 8)[0][1] is CONFLICT
    before = Record()
    before.add(Offsets(4, ((24, None),)), INT, 8, ACCESS)
    for at in (0, 8, 16):
        before.add(Offsets(at, ((24, None),)), ty.F64, 8, ACCESS)
    assert before.layout(first, 24) == ((0, ty.F64), (8, ty.F64), (16, ty.F64))


def test_some_places_of_a_stride_are_more_precise_than_an_unknown_index() -> None:
    record = Record()
    record.add(Offsets(0, ((8, None),)), INT, 4, ACCESS)
    record.add(Offsets(0, ((4, None),)), ty.F32, 4, ACCESS)
    assert record.layout(Offsets(0, ((8, None),)), 8) == ((0, INT), (4, ty.F32))


def test_an_index_does_not_go_back_into_a_header() -> None:
    record = Record()
    record.add(Offsets(0), INT, 4, ACCESS)
    record.add(Offsets(8), ty.PTR, 8, ACCESS)
    behind = Offsets(24, ((8, None),), True)
    assert record.reach(behind) == Offsets(16, ((8, None),))
    assert record.reach(Offsets(24, ((8, None),))) == Offsets(24, ((8, None),))
    floats = Record()
    floats.add(Offsets(8), ty.F64, 8, ACCESS)
    assert floats.reach(behind) == behind


def test_integers_of_each_struct_are_none_of_the_floats_of_an_index_without_bounds() -> None:
    """A node of 32 bytes: three integers, then an array of two doubles that a variable indexes."""
    record, index = Record(), Offsets(16, ((8, None),), True)
    record.add(index, ty.F64, 8, ACCESS)
    assert not record.contradicts(Offsets(0, ((32, None),)), ty.F64, 8, index)
    for at in (0, 4, 8):
        record.add(Offsets(at, ((32, None),), True), INT, 4, ACCESS)
    for at, none in ((0, True), (8, True), (16, False), (24, False)):
        assert record.contradicts(Offsets(at, ((32, None),)), ty.F64, 8, index) is none
        assert record.contradicts(Offsets(at + 64), ty.F64, 8, index) is none
    assert not record.contradicts(Offsets(0, ((32, None),)), ty.F64, 8, Offsets(0, ((64, None),)))


def test_what_is_called_an_integer_everywhere_is_none_of_the_floats_of_an_index_without_bounds() -> None:
    record, claim = Record(), Offsets(8, ((8, None),))
    record.add(Offsets(40), INT, 4, ACCESS)
    assert not record.overrules(40, 8, claim)  # half a float is something else
    record.add(Offsets(44), INT, 4, ACCESS)
    assert record.overrules(40, 8, claim)
    assert not record.overrules(40, 8, Offsets(40, ((8, None),)))
    assert not record.overrules(40, 8, Offsets(40))
    record.add(Offsets(40), ty.F64, 8, ACCESS)
    assert not record.overrules(40, 8, claim)


def test_what_is_called_a_short_member_of_a_struct_is_no_part_of_a_float() -> None:
    record, claim = Record(), Offsets(8, ((8, None),))
    record.name_number(Offsets(43), 1)
    assert record.overrules(40, 8, claim) and not record.overrules(48, 8, claim)
    assert not record.overrules(40, 8, Offsets(40, ((8, None),)))  # the element at which the index is zero
    assert record.overrules(40, 8, Offsets(40, ((8, None),), True))  # but for one of which nobody knows the sign
    record.name_number(Offsets(48), 8)  # an address, or the bits of a float, has as many bytes
    record.name_number(Offsets(56, ((8, None),)), 4)
    assert not record.overrules(48, 8, claim) and not record.overrules(64, 8, claim)
    record.add(Offsets(40), ty.F64, 8, ACCESS)
    assert not record.overrules(40, 8, claim)


def test_an_array_of_parts_is_concluded_until_it_is_seen_itself() -> None:
    record = Record()
    for at in (8, 24):
        record.add(Offsets(at, ((32, None),)), ty.PTR, 8, ACCESS)
    whole = (Offsets(8, ((16, None),)), ty.PTR, 8, ACCESS)
    assert whole in record.evidence
    assert record.concluded == {whole}
    before = record.version
    record.add(*whole)
    assert not record.concluded
    assert record.version > before


def test_claims_from_a_later_start_on_are_no_news() -> None:
    record = Record()
    assert record.add(Offsets(8, ((8, None),)), ty.F64, 8, ACCESS)
    assert not record.add(Offsets(24, ((8, None),)), ty.F64, 8, ACCESS)
    assert record.add(Offsets(0, ((8, None),)), ty.F64, 8, ACCESS)
    assert record.add(Offsets(28, ((8, None),)), ty.F64, 8, ACCESS)
    assert record.add(Offsets(24, ((8, None),), True), ty.F64, 8, ACCESS)
    assert record.add(Offsets(24, ((8, None),)), ty.F64, 8, USED)
    assert len(record) == 5


def test_evidence_that_comes_a_little_further_on_each_time_comes_to_rest() -> None:
    record = Record()
    assert record.add_all_along(Offsets(320), ty.F64, 8, ACCESS)
    assert record.layout(Offsets(304), 8) == ()
    assert record.add_all_along(Offsets(312), ty.F64, 8, ACCESS)
    assert not any(record.add_all_along(Offsets(at), ty.F64, 8, ACCESS) for at in range(400, -400, -8))
    assert record.layout(Offsets(0), 16) == ((0, ty.F64), (8, ty.F64))
    steps = sum(record.add_all_along(Offsets(at, ((48, None),)), INT, 4, ACCESS) for at in range(0, -960, -12))
    assert steps <= 4


def test_arrays_that_begin_at_many_places_are_one_claim_where_they_meet() -> None:
    draw, seen = random.Random(2), set()
    for _ in range(300):
        record = Record()
        for _ in range(12):
            kind, size = draw.choice(((ty.F64, 8), (ty.F32, 4), (INT, 8), (INT, 4), (ty.PTR, 8)))
            terms = draw.choice(((), ((8, None),), ((24, None),), ((40, None), (8, 2))))
            record.add(Offsets(4 * draw.randrange(12), terms), kind, size, draw.choice((ACCESS, USED, DECLARED)))
        places = Offsets(8 * draw.randrange(4), draw.choice(((), ((8, None),))))
        found = record.near(places, 24)
        assert record.layout(places, 24) == _merged_one_by_one(found, 24, record.wide, places.stride)
        seen.add((len(record.claims(places, 24)) < len(found), CONFLICT in dict(record.layout(places, 24)).values()))
    assert len(seen) == 4
    record = Record()
    for at in range(0, 4000, 24):
        record.add(Offsets(at, ((8000, None), (24, 160))), ty.F64, 8, ACCESS)
    assert len(record.near(Offsets(0, ((24, None),)), 8)) > 20 * len(record.claims(Offsets(0, ((24, None),)), 8)) > 0


def _merged_one_by_one(found: list[tuple[int, Evidence]], size: int, wide: dict[Evidence, int], step: int) -> Layout:
    """`merge`, of evidence of which no two are the same claim for it: each has a place of its own in the order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_kinds, "_distinct", lambda hits, _: hits)
        return merge(found, size, wide, step)


def test_what_is_near_is_found_once_until_more_is_known() -> None:
    record = Record()
    record.add(Offsets(8), ty.F64, 8, ACCESS)
    first = record.near(Offsets(0), 16)
    assert record.near(Offsets(0), 16) is first
    record.add(Offsets(0), ty.PTR, 8, ACCESS)
    assert [item[1] for _, item in record.near(Offsets(0), 16)] == [ty.PTR, ty.F64]
    assert record.layout(Offsets(0), 16) == ((0, ty.PTR), (8, ty.F64))


def test_words_of_both_kinds_stay_so_where_one_was_seen_at_some_of_them() -> None:
    every, eighth = Offsets(0, ((8, None),)), Offsets(56, ((64, None),))
    record = Record()
    record.add(eighth, ty.PTR, 8, ACCESS)
    record.add(every, ty.F64, 8, ACCESS)
    assert record.layout(every, 8) == ((0, ty.PTR),)
    record.add(every, ty.PTR, 8, ACCESS)
    assert record.layout(every, 8) == ((0, CONFLICT),)
    assert record.layout(eighth, 8) == ((0, ty.PTR),)
