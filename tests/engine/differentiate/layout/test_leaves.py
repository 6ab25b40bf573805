"""Arithmetic on values of any shape."""

from __future__ import annotations

import pytest

from irgrad.engine.differentiate.layout import leaves
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, is_zero

POINT = ty.struct((ty.F64, ty.I32, ty.array(2, ty.F32)))
LINKED = ty.struct((ty.I64, ty.struct((ty.PTR, ty.I8))))


def _argument(type_: ty.Type) -> Argument:
    return Argument(type_, "x", 0)


@pytest.mark.parametrize(
    ("type_", "floats", "pointers"),
    [
        (ty.F64, True, False), (ty.I64, False, False), (ty.PTR, False, True), (ty.vector(4, ty.F32), True, False),
        (ty.vector(2, ty.PTR), False, True), (POINT, True, False), (LINKED, False, True),
        (ty.array(3, LINKED), False, True), (ty.struct(()), False, False),
    ],
)  # fmt: skip
def test_leaves_are_found_at_any_depth(type_: ty.Type, floats: bool, pointers: bool) -> None:
    assert leaves.has_float(type_) is floats
    assert leaves.has_pointer(type_) is pointers


def test_fields_of_structs_and_arrays() -> None:
    assert leaves.fields_of(POINT) == [ty.F64, ty.I32, ty.array(2, ty.F32)]
    assert leaves.fields_of(ty.array(3, ty.F64)) == [ty.F64] * 3


@pytest.mark.parametrize("type_", [ty.F64, ty.vector(4, ty.F32), POINT])
def test_zeros_are_neutral_and_cost_nothing(type_: ty.Type) -> None:
    b = Builder(Block())
    x = _argument(type_)
    assert leaves.add(b, leaves.zero_of(type_), x) is x
    assert leaves.add(b, x, leaves.zero_of(type_)) is x
    assert is_zero(leaves.neg(b, leaves.zero_of(type_)))
    assert not b.block.instructions


def test_a_sum_of_structs_adds_the_floats_and_keeps_the_rest() -> None:
    b = Builder(Block())
    leaves.add(b, _argument(POINT), _argument(POINT))
    opcodes = [i.opcode for i in b.block.instructions]
    assert opcodes.count("fadd") == 3, "one for the double, one for each float of the array"
    assert "add" not in opcodes, "the integer is that of the first operand"
    assert b.block.instructions[-1].type is POINT


def test_integers_have_no_sum() -> None:
    b = Builder(Block())
    x = _argument(ty.I64)
    assert leaves.add(b, x, _argument(ty.I64)) is x


def test_lanes() -> None:
    assert [lane.value for lane in leaves.lanes(ty.vector(3, ty.F64))] == [0, 1, 2]
