"""Lanes with memories of their own: types, and what moves them. What they compute: `notation_programs/width.c`."""

from __future__ import annotations

import pytest

from irgrad.engine.differentiate.layout.separate_shadows import each, join, join_constants, lane, moved
from irgrad.engine.differentiate.layout.shadow_memory import memory_of
from irgrad.engine.differentiate.layout.shadow_types import Apart, shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstAggregate, ConstZero, GlobalVariable, const_float
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

PAIR = ty.struct((ty.F64, ty.PTR))


@pytest.mark.parametrize(("primal", "shadow"), [
    (ty.F64, "<3 x double>"), (ty.vector(2, ty.F32), "<6 x float>"), (ty.PTR, "[3 x ptr]"), (ty.I64, "[3 x i64]"),
    (PAIR, "{ <3 x double>, [3 x ptr] }"), (ty.array(2, ty.PTR), "[2 x [3 x ptr]]"),
])  # fmt: skip
def test_types(primal: ty.Type, shadow: str) -> None:
    assert str(shadow_type(primal, Apart(3))) == shadow
    assert str(shadow_type(ty.PTR, 3)) == "ptr"  # side by side: not mixed up with lanes that lie apart


def test_memory_is_as_large_as_that_of_one_lane() -> None:
    size = const_float(ty.F64, 1.0)
    memory = memory_of(Apart(4))
    assert memory.scale == 1
    assert memory.scaled(Builder(Block()), size) is size


def test_lanes_of_constants() -> None:
    b = Builder(Block())
    shadows = [GlobalVariable(f"s{j}", ty.F64, None, False, "", "") for j in range(2)]
    whole = join_constants(ty.PTR, shadows)
    assert isinstance(whole, ConstAggregate)
    assert each(b, whole, Apart(2)) == shadows
    assert isinstance(join_constants(ty.PTR, [ConstZero(ty.PTR)] * 2), ConstZero)
    both = join_constants(PAIR, [ConstAggregate(PAIR, [ConstZero(ty.F64), s]) for s in shadows])
    assert str(both.type) == "{ <2 x double>, [2 x ptr] }"
    assert not b.block.instructions


def test_lanes_are_taken_apart_and_joined() -> None:
    b = Builder(Block())
    numbers, pointers = shadow_type(ty.F64, Apart(2)), shadow_type(ty.PTR, Apart(2))
    value = ConstAggregate(shadow_type(PAIR, Apart(2)), [ConstZero(numbers), ConstZero(pointers)])
    parts = [lane(b, PAIR, value, j, 2) for j in range(2)]
    assert [str(part.type) for part in parts] == [str(PAIR)] * 2
    assert str(join(b, PAIR, parts).type) == str(value.type)
    shadows = [GlobalVariable(f"s{j}", ty.F64, None, False, "", "") for j in range(2)]
    pointers = ConstAggregate(shadow_type(ty.PTR, Apart(2)), shadows)
    before = len(b.block.instructions)
    moved(b, pointers, 8, Apart(2))
    opcodes = [i.opcode for i in b.block.instructions[before:]]
    assert opcodes == ["getelementptr", "getelementptr", "insertvalue", "insertvalue"]


def test_numbers_as_bits_are_moved_in_each_lane() -> None:
    """What they come to is in notation_programs/bits_width.c."""
    from irgrad.engine.enzyme.lower import lower

    text = lower(load("""
extern int enzyme_width;
struct two { double a, b; };
struct two __enzyme_fwddiff(void *, ...);
struct tagged { int n; float x; };
__attribute__((noinline)) struct tagged make(float x, int n) { struct tagged t = {n + 1, x * x}; return t; }
double f(double x) { struct tagged t = make(x, 3); return t.n * t.x; }
struct two r(double x) { return __enzyme_fwddiff((void *)f, enzyme_width, 2, x, 1.0, 2.0); }
""").text)
    (made,) = [part for part in text.split("\ndefine ") if "fwd.make(" in part.split("\n", 1)[0]]
    assert made.count(" = shl i64 ") == 2
    assert "[2 x i64]" in made.split("\n", 1)[0]


def test_pointers_as_numbers_are_refused() -> None:
    from irgrad.engine.enzyme.lower import lower

    text = load("""
extern int enzyme_width;
struct two { double a, b; };
struct two __enzyme_fwddiff(void *, ...);
__attribute__((noinline)) static double *next(unsigned long p) { return (double *)((p + 15) & ~15ul); }
double f(double *x) { return *next((unsigned long)x) * 2; }
struct two r(double *x, double *d, double *e) { return __enzyme_fwddiff((void *)f, enzyme_width, 2, x, d, e); }
""").text
    with pytest.raises(Unsupported, match="integers in a derivative of width 2"):
        lower(text)
