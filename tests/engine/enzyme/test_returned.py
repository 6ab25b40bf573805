"""Values that a call returns: where each lies in the result that the program declares."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.returned import Declared, Part, Returned, arrange
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type

NUMBER = Returned((Part(ty.F64, "%n", numbers=((0, ty.F64),)),))
SINGLE = Returned((Part(ty.F32, "%s", numbers=((0, ty.F32),)),))
COUNTED = (Part(ty.I64, "%c", 0), Part(ty.F64, "%v", 8, ((0, ty.F64),)))
"""The registers of struct { long count; double value; }."""


def _placed(values: list[Returned], kind: Type | None, *, memory: bool = False, more: bool = False) -> object:
    moves = arrange(values, Declared(kind, memory, more))
    return moves if moves is None else [(at, slot) for at, _, slot, _ in moves]


def _struct(*fields: Type) -> Type:
    return ty.struct(fields)


@pytest.mark.parametrize(("values", "kind", "want"), [
    ([NUMBER], ty.F64, [(0, "%n")]),
    ([NUMBER], ty.F32, None),
    ([NUMBER, NUMBER], ty.F64, None),
    ([SINGLE, NUMBER], _struct(ty.F32, ty.F64), [(0, "%s"), (8, "%n")]),
    ([NUMBER, SINGLE], _struct(ty.F64, ty.F64), None),
    ([SINGLE, SINGLE], ty.vector(2, ty.F32), [(0, "%s"), (4, "%s")]),
    ([SINGLE, SINGLE], ty.I64, [(0, "%s"), (4, "%s")]),
])  # fmt: skip
def test_numbers_in_registers(values: list[Returned], kind: Type, want: object) -> None:
    assert _placed(values, kind) == want


def test_a_struct_comes_back_whole_or_as_its_numbers() -> None:
    value = Returned(COUNTED, loose=True, alone=True)
    assert _placed([value], _struct(ty.I64, ty.F64)) == [(0, "%c"), (8, "%v")]
    assert _placed([value], ty.F64) == [(0, "%v")]
    assert _placed([NUMBER, value], _struct(ty.F64, ty.I64, ty.F64), memory=True) == [(0, "%n"), (8, "%c"), (16, "%v")]
    assert _placed([NUMBER, value], _struct(ty.F64, ty.F64)) == [(0, "%n"), (0 + 8, "%v")]
    assert _placed([Returned(COUNTED, loose=True)], ty.F64) is None
    assert _placed([Returned(COUNTED, only=True)], _struct(ty.I64, ty.F64)) is None


def test_room_for_other_values() -> None:
    wide = _struct(ty.F64, ty.F64, ty.F64)
    assert _placed([NUMBER], wide, memory=True) is None
    assert _placed([NUMBER], wide, memory=True, more=True) == [(0, "%n")]
    assert _placed([NUMBER], None) == [(0, "%n")]


def test_what_has_no_numbers_may_be_left_out() -> None:
    integers = (Part(ty.I64, "%c"),)
    assert Returned(integers, alone=True).nothing
    assert not Returned(integers).nothing
    assert not Returned(COUNTED, alone=True).nothing
    assert _placed([Returned(integers, alone=True), NUMBER], ty.F64) == [(0, "%n")]


def test_values_in_messages() -> None:
    assert str(NUMBER) == "double"
    assert str(Returned(COUNTED)) == "{ i64, double }"
