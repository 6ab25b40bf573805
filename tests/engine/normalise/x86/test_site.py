"""Words for instructions: lanes, masks of both kinds, constants."""

from __future__ import annotations

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, ConstZero, Function, Module, Value
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.engine.normalise.x86.site import Site, bits_of, lanes_of

D4 = ty.vector(4, ty.float_("double"))


def _site(*args: Value) -> tuple[Site, Block]:
    block = Block("entry")
    return Site(Module(), Builder(block), "avx.max.pd.256", args, D4), block


def _vector() -> Value:
    return Function("f", ty.function(ty.VOID, (D4,)), ["v"]).args[0]


def _written(block: Block) -> list[str]:
    return [instruction_to_text(instr).strip().partition(" = ")[2] for instr in block.instructions]


@pytest.mark.parametrize(("count", "lanes"), [(2, [0, 1]), (4, None), (8, [0, 1, 2, 3, 4, 4, 4, 4])])
def test_the_first_lanes_and_zeros_behind(count: int, lanes: list[int] | None) -> None:
    site, block = _site()
    made = site.first(_vector(), count)
    assert lanes_of(made) == count
    assert bits_of(made) == 64
    if lanes is None:
        assert not block.instructions
    else:
        assert ", ".join(f"i32 {lane}" for lane in lanes) in _written(block)[0]


def test_masks_are_bits_of_an_integer_or_flags() -> None:
    site, block = _site()
    made = site.mask(ConstInt(ty.I8, 5), 4)
    assert made.type is ty.vector(4, ty.I1)
    assert _written(block)[0] == "bitcast i8 5 to <8 x i1>"
    flags = ConstZero(ty.vector(4, ty.I1))
    assert site.mask(flags, 4) is flags
    assert site.bit(ConstInt(ty.I8, 1)).type is ty.I1
    assert site.packed_bits(flags).type is ty.int_(4)


def test_signs_are_a_comparison_of_the_bits() -> None:
    site, block = _site()
    assert site.signs(_vector()).type is ty.vector(4, ty.I1)
    assert [text.split(" ", 1)[0] for text in _written(block)] == ["bitcast", "icmp"]


def test_functions_are_named_by_their_types() -> None:
    site, block = _site()
    site.call("llvm.fma", *[_vector()] * 3)
    assert "@llvm.fma.v4f64(" in _written(block)[0]
    assert "llvm.fma.v4f64" in site.module.functions


def test_an_immediate_is_a_byte() -> None:
    site, _ = _site(ConstInt(ty.I8, -1))
    assert site.number(0) == 255
