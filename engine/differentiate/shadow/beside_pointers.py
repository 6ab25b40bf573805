"""Integers in which floats lie beside pointers: `{ double *, double }` that is copied as one `<2 x i64>`.

The two parts of such a shadow go opposite ways. A float's is an adjoint, which the reverse sweep moves back and leaves
zero behind; a pointer's is an address, which the primal sweep has put there and which the reverse sweep still reads:

    store v, q          v_ += floats of M^[q];   M^[q] = pointers of M^[q]
    v = load p          M^[p] += v_ in the floats, and nowhere else

(M^: shadow memory, v_: the adjoint of v.)
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import PTR, Layout, kind_size
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.layout.separate_shadows import join, lane
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Value

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit


def placed(unit: Unit, value: Value) -> Layout:
    """What an integer carries, where its floats are of several types or lie beside pointers, and each is known to have
    a place of its own; else nothing."""
    carriers = unit.types.carriers
    layout, kinds = carriers.layout(value), carriers.floats(value)
    several = len(kinds) > 1 or (bool(kinds) and any(kind is PTR for _, kind in layout))
    known = kinds == {kind for _, kind in layout if isinstance(kind, ty.FloatType)}
    return layout if several and known and apart(layout) else ()


def apart(layout: Layout) -> bool:
    """Whether no part of a layout begins inside of another."""
    return all(at + kind_size(kind) <= following for (at, kind), (following, _) in itertools.pairwise(layout))


def add_placed(b: Builder, layout: Layout, lanes: int, x: Value, y: Value) -> Value:
    """The sum of two integers with floats, each float at a place of its own; of the other bytes, those of `x`."""
    whole = ty.int_(8 * ty.store_size(x.type))
    flags, b.flags = b.flags, ()
    first, second = b.cast("bitcast", x, whole), b.cast("bitcast", y, whole)
    total = b.binary("and", first, ConstInt(whole, ~_floats(layout, lanes)))
    for at, kind in layout:
        if not isinstance(kind, ty.FloatType):
            continue
        view = kind if lanes == 1 else ty.vector(lanes, kind)
        part, by = ty.int_(8 * ty.store_size(view)), ConstInt(whole, 8 * at * lanes)
        one, other = (b.cast("bitcast", b.cast("trunc", b.binary("lshr", v, by), part), view) for v in (first, second))
        added = b.cast("zext", b.cast("bitcast", b.binary("fadd", one, other), part), whole)
        total = b.binary("or", total, b.binary("shl", added, by), flags=("disjoint",))
    b.flags = flags
    return b.cast("bitcast", total, x.type)


def divided(unit: Unit, b: Builder, value: Value, shadow: Value) -> tuple[Value, Value]:
    """(the adjoint, what stays in shadow memory) of the shadow of a value that is stored: all of it and zero, unless
    there are pointers in it."""
    layout = placed(unit, value) if value.type.scalar.is_int else ()
    if not any(kind is PTR for _, kind in layout):
        return shadow, zero_of(unit.wide(value.type))
    if unit.memory.separate:
        rows = [lane(b, value.type, shadow, j, unit.width) for j in range(unit.width)]
        pairs = [_divided(b, layout, 1, row) for row in rows]
        adjoint, rest = (join(b, value.type, [pair[i] for pair in pairs]) for i in (0, 1))
        return adjoint, rest
    return _divided(b, layout, unit.width, shadow)


def _divided(b: Builder, layout: Layout, lanes: int, shadow: Value) -> tuple[Value, Value]:
    whole = ty.int_(8 * ty.store_size(shadow.type))
    bits, mask = b.cast("bitcast", shadow, whole), _floats(layout, lanes)
    floats, rest = (b.binary("and", bits, ConstInt(whole, m)) for m in (mask, ~mask))
    return b.cast("bitcast", floats, shadow.type), b.cast("bitcast", rest, shadow.type)


def _floats(layout: Layout, lanes: int) -> int:
    """Ones in the bits of floats."""
    parts = [(8 * at * lanes, 8 * kind_size(kind) * lanes) for at, kind in layout if isinstance(kind, ty.FloatType)]
    return sum(((1 << bits) - 1) << at for at, bits in parts)
