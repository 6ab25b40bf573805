"""Sums of adjoints that travel as integers, with the bits of floats inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.runtime.word_sums import WORD_SUM

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["add_bits", "add_words"]


def add_bits(b: Builder, kinds: frozenset[Type], x: Value, y: Value) -> Value:
    """The sum of two integers full of floats of one type; of several types in one place at most one may be nonzero."""
    bits = 8 * ty.store_size(x.type)
    if not kinds:
        return x
    if len(kinds) == 1:
        (kind,) = kinds
        width = 8 * ty.store_size(kind)
        if bits % width == 0:
            view = kind if bits == width else ty.vector(bits // width, kind)
            total = b.binary("fadd", b.cast("bitcast", x, view), b.cast("bitcast", y, view))
            return b.cast("bitcast", total, x.type)
    flags, b.flags = b.flags, ()
    whole = ty.int_(bits)  # a float may lie in several lanes
    one, other = b.cast("bitcast", x, whole), b.cast("bitcast", y, whole)
    first, second = b.icmp("eq", one, zero_of(whole)), b.icmp("eq", other, zero_of(whole))
    every = ConstInt(whole, -1)  # a NaN in all formats: two unions of different type were added
    result = b.cast("bitcast", b.select(first, other, b.select(second, one, every)), x.type)
    b.flags = flags
    return result


def add_words(unit: Unit, b: Builder, x: Value, y: Value) -> Value:
    """The sum of two such words where they are doubles, or of each two lanes; for the next derivative they stay words
    (see `runtime/word_sums.py`)."""
    total = unit.runtime(WORD_SUM)
    if not isinstance(x.type, ty.VectorType):
        return b.call(total, [x, y])
    result = x
    for i in range(x.type.count):
        added = b.call(total, [b.extractelement(x, i), b.extractelement(y, i)])
        result = b.insertelement(result, added, i)
    return result
