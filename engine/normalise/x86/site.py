"""One call of an intrinsic that is taken apart: its operands, and short words for the instructions that replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstInt,
    ConstUndef,
    ConstZero,
    Module,
    Value,
    const_float,
)
from irgrad.engine.ir.rewrite import declare

__all__ = ["Recipe", "Site", "bits_of", "lanes_of"]


def lanes_of(value: Value) -> int:
    """How many lanes a vector has."""
    assert isinstance(value.type, ty.VectorType)
    return value.type.count


def bits_of(value: Value) -> int:
    """Bits of one lane of a vector, or of a number."""
    scalar = value.type.scalar
    assert isinstance(scalar, ty.IntType | ty.FloatType)
    return scalar.bits


@dataclass(slots=True)
class Site:
    """A call: `name` without `llvm.x86.`, its operands, the type of its result, and where the instructions go."""

    module: Module
    b: Builder
    name: str
    args: Sequence[Value]
    type: ty.Type

    # -- constants -----------------------------------------------------------------------------------------------

    def number(self, index: int) -> int:
        """The immediate operand `index`."""
        value = self.args[index]
        assert isinstance(value, ConstInt)
        return value.value & 0xFF

    def splat(self, type_: ty.Type, value: float) -> Constant:
        """A number in every lane of a type."""
        scalar = type_.scalar
        one = const_float(scalar, value) if scalar.is_float else ConstInt(scalar, int(value))
        return ConstAggregate(type_, [one] * type_.count) if isinstance(type_, ty.VectorType) else one

    # -- lanes ---------------------------------------------------------------------------------------------------

    def shuffle(self, a: Value, b: Value, lanes: Iterable[int]) -> Value:
        """A vector of these lanes of `a` and, counted on, of `b`."""
        from irgrad.engine.ir.model import Instruction

        picked = [ConstInt(ty.I32, lane) for lane in lanes]
        assert isinstance(a.type, ty.VectorType)
        mask = ConstAggregate(ty.vector(len(picked), ty.I32), picked)
        return self.b.insert(Instruction("shufflevector", ty.vector(len(picked), a.type.elem), [a, b, mask]))

    def first(self, vector: Value, count: int) -> Value:
        """The first lanes of a vector; zeros behind it where it is shorter."""
        have = lanes_of(vector)
        if have == count:
            return vector
        return self.shuffle(vector, ConstZero(vector.type), [min(i, have) for i in range(count)])

    def low(self, vector: Value) -> Value:
        """Lane 0."""
        return self.b.extractelement(vector, 0)

    def with_low(self, vector: Value, value: Value) -> Value:
        """The vector with another lane 0."""
        return self.b.insertelement(vector, value, 0)

    def lanewise(self, make: Callable[[int], Value]) -> Value:
        """A vector of the result's type, each lane made on its own."""
        whole: Value = ConstUndef(self.type, poison=True)
        assert isinstance(self.type, ty.VectorType)
        for lane in range(self.type.count):
            whole = self.b.insertelement(whole, make(lane), lane)
        return whole

    # -- masks ---------------------------------------------------------------------------------------------------

    def integers(self, value: Value) -> Value:
        """The bits of the lanes as integers."""
        lane = ty.int_(bits_of(value))
        type_ = ty.vector(value.type.count, lane) if isinstance(value.type, ty.VectorType) else lane
        return self.b.cast("bitcast", value, type_)

    def signs(self, vector: Value) -> Value:
        """The sign bits of the lanes, as <n x i1>."""
        whole = self.integers(vector)
        return self.b.icmp("slt", whole, ConstZero(whole.type))

    def mask(self, value: Value, count: int) -> Value:
        """A mask, an integer of bits or <n x i1>, as <count x i1>."""
        if isinstance(value.type, ty.IntType):
            value = self.b.cast("bitcast", value, ty.vector(value.type.bits, ty.I1))
        return self.first(value, count)

    def bit(self, mask: Value) -> Value:
        """Bit 0 of a mask."""
        return self.b.cast("trunc", mask, ty.I1) if isinstance(mask.type, ty.IntType) else self.low(mask)

    def packed_bits(self, mask: Value) -> Value:
        """<n x i1> as an integer of n bits."""
        return self.b.cast("bitcast", mask, ty.int_(lanes_of(mask)))

    def choose(self, mask: Value, new: Value, old: Value) -> Value:
        """What is new where the mask is set, the old elsewhere."""
        return self.b.select(self.mask(mask, lanes_of(new)), new, old)

    # -- calls ---------------------------------------------------------------------------------------------------

    def call(self, stem: str, *args: Value) -> Value:
        """A function of lanes, `llvm.sqrt` or `irgrad.rcp`, of operands of one type."""
        type_ = args[0].type
        name = f"{stem}.{type_suffix(type_)}"
        return self.b.call(declare(self.module, name, type_, tuple(a.type for a in args), PURE), args)


Recipe = Callable[[Site], Value | None]
"""Writes what a call does; None for nothing to take its place (a store)."""
