"""Copies of memory tell their targets what their sources know."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, DECLARED, PTR, Kind, Record
from irgrad.engine.analyses.memory.strided_sets import ZERO, Offsets
from irgrad.engine.analyses.types.copied_evidence import Copy
from irgrad.engine.analyses.types.records import Records
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstZero, Instruction


def _copy(size: int | None) -> Copy:
    null = ConstZero(ty.PTR)
    return Copy(Instruction("call", ty.VOID, []), null, null, size)


def test_of_so_many_bytes() -> None:
    records = Records()
    records.of(1).add(Offsets(8), ty.F64, 8, ACCESS)
    records.of(1).add(Offsets(16), PTR, 8, ACCESS)
    records.of(1).add(Offsets(24), ty.F64, 8, DECLARED)
    assert _copy(8).transfer(False, {1: Offsets(8)}, {2: ZERO, 3: Offsets(32)}, records)
    assert records.of(2).layout(ZERO, 16) == ((0, ty.F64),)
    assert records.of(3).layout(Offsets(32), 16) == ((0, ty.F64),)
    assert not _copy(8).transfer(False, {1: Offsets(8)}, {2: ZERO}, records)


def test_of_all_that_follows() -> None:
    records = Records()
    records.of(1).add(Offsets(0), PTR, 8, ACCESS)
    records.of(1).add(Offsets(8, ((16, None),)), ty.F64, 8, ACCESS)
    assert _copy(None).transfer(True, {1: Offsets(8)}, {2: ZERO}, records)
    assert records.of(2).layout(ZERO, 24) == ((0, ty.F64), (16, ty.F64))


def test_of_very_many_objects_at_once() -> None:
    records = Records()
    many = dict.fromkeys(range(10, 90), ZERO)
    records.of(11).add(ZERO, ty.F64, 8, ACCESS)
    records.of(12).add(Offsets(8), PTR, 8, ACCESS)
    assert _copy(16).transfer(False, many, dict.fromkeys(range(100, 180), Offsets(16)), records)
    assert records.of(150).layout(Offsets(16), 16) == ((0, ty.F64), (8, PTR))


def test_the_state_of_the_last_time() -> None:
    copy = _copy(8)
    assert not copy.as_before(False, 1)
    assert not copy.as_before(True, 1)
    assert copy.as_before(False, 1)
    assert not copy.as_before(False, 2)


def test_what_was_told_is_told_again_to_other_targets_only() -> None:
    records, copy = Records(), _copy(16)
    records.of(1).add(ZERO, ty.F64, 8, ACCESS)
    assert copy.transfer(False, {1: ZERO}, {2: ZERO}, records)
    assert not copy.transfer(False, {1: ZERO}, {2: ZERO}, records)
    assert copy.transfer(False, {1: ZERO}, {3: ZERO}, records)
    records.of(1).add(Offsets(8), PTR, 8, ACCESS)
    assert copy.transfer(False, {1: ZERO}, {3: ZERO}, records)
    assert records.of(3).layout(ZERO, 16) == ((0, ty.F64), (8, PTR))


def test_sources_of_which_no_more_is_known_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Record] = []
    contradicts = Record.contradicts

    def counted(self: Record, places: Offsets, kind: Kind, size: int, claim: Offsets) -> bool:
        looked.append(self)
        return contradicts(self, places, kind, size, claim)

    monkeypatch.setattr(Record, "contradicts", counted)
    records, copy, sources = Records(), _copy(16), dict.fromkeys(range(1, 11), ZERO)
    for bit in sources:
        records.of(bit).add(Offsets(0, ((16, None),)), ty.F64, 8, ACCESS)
    assert copy.transfer(False, sources, {20: ZERO}, records)
    assert len(looked) == 10
    records.of(4).add(Offsets(8, ((16, None),)), PTR, 8, ACCESS)
    assert copy.transfer(False, sources, {20: ZERO}, records)
    assert looked[10:] == [records.of(4)] * 2
    assert records.of(20).layout(ZERO, 16) == ((0, ty.F64), (8, PTR))
