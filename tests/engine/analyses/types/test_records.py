"""Records of objects, and of very many of them together."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, CONFLICT, INT, PTR, Record
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.strided_sets import ZERO, Offsets
from irgrad.engine.analyses.types.records import Records, only_integers
from irgrad.engine.ir import types as ty

MANY = dict.fromkeys(range(100), ZERO)


def test_very_many_objects_are_asked_at_once() -> None:
    records = Records()
    records.of(3).add(ZERO, ty.F64, 8, ACCESS)
    found = records.alike(MANY)
    assert found is not None
    assert records.alike(MANY) == found
    records.of(7).add(Offsets(8), PTR, 8, ACCESS)
    before = records.versions(MANY)
    assert records.layout(MANY, 16) == ((0, ty.F64), (8, PTR))
    assert records.layout(dict.fromkeys((3, 5), ZERO), 16) == ((0, ty.F64),)
    records.of(90).add(Offsets(16), ty.F64, 8, ACCESS)
    assert records.versions(MANY) > before
    assert records.layout(MANY, 24) == ((0, ty.F64), (8, PTR), (16, ty.F64))


def test_objects_at_several_places_are_asked_one_by_one() -> None:
    records = Records()
    assert records.alike({**MANY, 5: Offsets(8)}) is None
    assert records.alike({1: ZERO, 2: ZERO}) is None


def test_beyond_a_number_of_sets_all_objects_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irgrad.engine.analyses.types.records._MOST_SETS", 1)
    records = Records()
    records.of(1).add(ZERO, ty.F64, 8, ACCESS)
    first, second, third = (records.alike(dict.fromkeys(range(k, k + 50), ZERO)) for k in range(3))
    assert first is not None and second is not None and third is not None
    assert first[0] is not second[0] and second[0] is third[0]
    records.of(300).add(Offsets(8), ty.F64, 8, ACCESS)
    assert third[0].layout(ZERO, 16) == ((0, ty.F64), (8, ty.F64))


def test_a_header_says_nothing_of_what_repeats_behind_it() -> None:
    records = Records()
    records.of(1).add(Offsets(8), INT, 8, ACCESS)
    records.of(1).add(Offsets(0), PTR, 8, ACCESS)
    records.of(1).add(Offsets(32, ((24, None),)), ty.F64, 8, ACCESS)
    records.of(1).add(Offsets(24, ((24, None),)), ty.F64, 8, ACCESS)
    assert records.repeated({1: Offsets(0, ((24, None),))}, 24) == ((0, CONFLICT), (8, ty.F64))


def test_integers_alone_wherever_an_access_may_be() -> None:
    record = Record()
    record.add(Offsets(0, ((16, None),)), INT, 8, ACCESS)
    record.add(Offsets(8, ((16, None),)), ty.F64, 8, ACCESS)
    assert only_integers(record, Offsets(0), 8)
    assert only_integers(record, Offsets(0, ((16, None),)), 8)
    assert not only_integers(record, Offsets(8), 8)
    assert not only_integers(record, Offsets(0, ((8, None),)), 8)


def test_nothing_lies_behind_the_end_of_an_object() -> None:
    """Copies of parts at unknown distances claim places that memory of known size does not have."""
    objects = [Object("heap", None, size, n, None) for n, size in enumerate((24, None))]
    records = Records(objects)
    for bit, kept in ((0, 2), (1, 4)):
        for places in (Offsets(16), Offsets(8, ((24, 3),)), Offsets(24), Offsets(40, ((24, None),))):
            records.of(bit).add(places, ty.F64, 8, 1)
        assert len(records.of(bit)) == kept
    assert not records.of(0).add(Offsets(32), ty.F64, 8, 1)
    assert records.of(0).add(Offsets(32, ((24, None),), True), ty.F64, 8, 1)
