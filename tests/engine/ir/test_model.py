"""Values of the model: integers wrap, float bits are exact."""

from __future__ import annotations

import gc
import math
import struct

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    ConstAggregate,
    ConstFloat,
    ConstInt,
    ConstZero,
    Instruction,
    bits_to_float,
    const_float,
    float_to_bits,
    is_zero,
)


def test_integers_are_read_as_signed() -> None:
    assert ConstInt(ty.I8, 255).value == -1
    assert ConstInt(ty.I1, 1).value == 1
    assert ConstInt(ty.int_(128), 1 << 127).value == -(1 << 127)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, 0.1, 5e-324, 1.7e308, math.inf, -math.inf])
def test_doubles_survive_the_wider_formats(value: float) -> None:
    for kind in ("double", "x86_fp80", "fp128"):
        back = bits_to_float(ty.float_(kind), float_to_bits(ty.float_(kind), value))
        assert struct.pack("<d", back) == struct.pack("<d", value)


def test_narrow_formats_round_to_nearest() -> None:
    assert bits_to_float(ty.HALF, float_to_bits(ty.HALF, 0.1)) == 0.0999755859375
    assert bits_to_float(ty.F32, float_to_bits(ty.F32, 1e300)) == math.inf
    assert float_to_bits(ty.BFLOAT, 1.0) == 0x3F80
    assert float_to_bits(ty.BFLOAT, 1.00390625) == 0x3F80  # a tie goes to the even neighbour
    assert float_to_bits(ty.F80, 1.0) == 0x3FFF8000000000000000


def test_zero_means_all_bits() -> None:
    assert is_zero(const_float(ty.F64, 0.0)) and not is_zero(const_float(ty.F64, -0.0))
    assert is_zero(ConstZero(ty.PTR)) and is_zero(ConstAggregate(ty.vector(2, ty.I8), [ConstInt(ty.I8, 0)] * 2))
    splat = const_float(ty.vector(4, ty.F32), 1.5)
    assert isinstance(splat, ConstAggregate) and all(isinstance(e, ConstFloat) and e.value == 1.5 for e in splat.elems)


def test_only_phis_and_terminators_keep_lists_of_blocks() -> None:
    block, number = Block(), ConstInt(ty.I32, 1)
    phi = Instruction("phi", ty.I32, [number], blocks=[block])
    phi.blocks.append(block)
    assert phi.blocks == [block, block]
    assert Instruction("br", ty.VOID, blocks=[block]).blocks == [block]
    add = Instruction("add", ty.I32, [number, number])
    assert list(add.blocks) == list(add.debug_records) == []
    assert not gc.is_tracked(add.blocks) and not gc.is_tracked(add.debug_records)
