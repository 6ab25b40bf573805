"""Runtime activity: where a shadow is the value's own memory, the program means that nothing there has a derivative.

Whether it is, is asked when the derivative runs, before each access to shadow memory: tangents and adjoints that are
read there are zero, and what is written there is what the memory holds. Pointers that are read there are the primal's,
so that all they lead to is constant in the same way.

Integers are so without it: programs copy a struct, put shadows in place of the addresses of its floats, and leave those
of its integers (an array of pivots, counters). What is written there and may be no float asks as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout import separate_shadows
from irgrad.engine.differentiate.layout.leaves import fields_of, has_float, zero_of
from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.differentiate.shadow.copies import layout_of_copy
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.sweeps import AdjointSweep, TangentSweep
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, ConstZero, Instruction, Value
from irgrad.engine.ir.types import Type

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.call_effects import Effect
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["asked", "clear", "clear_number", "clear_numbers", "kept", "memory_call", "read", "refuse_rule",
           "reverse_copy", "sizes"]  # fmt: skip

_PLAIN = (ty.F32, ty.F64, ty.PTR)  # what an integer carries that is nothing else


def asked(unit: Unit, address: Value, value: Value | None = None) -> bool:
    """Whether a write asks if the shadow is the value's own memory: always under runtime activity; else where a
    program gives the shadows, for an integer, and for bytes that a call writes (no value)."""
    if unit.runtime_activity:
        return True
    if not isinstance(unit.width, Apart) and unit.width != 1:
        return False
    if value is not None and (not value.type.scalar.is_int or unit.types.carries(value) in _PLAIN):
        return False
    return bool(unit.pointers.expand(unit.pointers.of(address)) & unit.pointers.overlapping)


def _lanes(unit: Unit, b: Builder, type_: Type, value: Value) -> list[Value]:
    width = unit.width
    if not isinstance(width, Apart):
        return [value]
    return [separate_shadows.lane(b, type_, value, j, width) for j in range(width)]


def _joined(unit: Unit, b: Builder, type_: Type, parts: Sequence[Value]) -> Value:
    return separate_shadows.join(b, type_, parts) if unit.memory.separate else parts[0]


def same(unit: Unit, b: Builder, primal: Value, shadow: Value) -> list[Value]:
    """Whether a shadow is the value's own memory, in each lane."""
    return [b.icmp("eq", primal, at) for at in separate_shadows.each(b, shadow, unit.width)]


def read(
    unit: Unit, b: Builder, type_: Type, primal: Value, shadow: Value, found: Value, *, adjoint: bool = False
) -> Value:
    """What was read from shadow memory, its numbers zero where that is the primal's; integers as well, of adjoints."""
    own = same(unit, b, primal, shadow)
    rows = zip(_lanes(unit, b, type_, found), own, strict=True)
    if adjoint and type_.scalar.is_int:
        return _joined(unit, b, type_, [b.select(yes, zero_of(type_), part) for part, yes in rows])
    return _joined(unit, b, type_, [_cleared(b, type_, part, yes) for part, yes in rows])


def _cleared(b: Builder, type_: Type, value: Value, yes: Value) -> Value:
    if type_.is_fp:
        return b.select(yes, zero_of(type_), value)
    if not type_.is_aggregate or not has_float(type_):
        return value
    for i, kind in enumerate(fields_of(type_)):
        value = b.insertvalue(value, _cleared(b, kind, b.extractvalue(value, i), yes), i)
    return value


def kept(unit: Unit, b: Builder, type_: Type, primal: Value, shadow: Value, new: Value, own: Value) -> Value:
    """What to write to shadow memory: `new`, or where that is the primal's memory what it holds.

    `own`: that value, of the primal's type or, read from the shadow, of the shadow's.
    """
    yes = same(unit, b, primal, shadow)
    before = _lanes(unit, b, type_, own) if own.type is not type_ else [own] * len(yes)
    parts = [b.select(same_, old, part)
             for same_, old, part in zip(yes, before, _lanes(unit, b, type_, new), strict=True)]  # fmt: skip
    return _joined(unit, b, type_, parts)


def sizes(
    unit: Unit, b: Builder, size: Value, primals: Sequence[Value], shadows: Sequence[Value]
) -> list[list[Value]]:
    """Bytes to copy or to fill in each lane, and bytes to clear because the source (the second pointer) has no
    derivative."""
    size = b.to_i64(size, signed=False)
    nothing = ConstInt(ty.I64, 0)
    into = same(unit, b, primals[0], shadows[0])
    out_of: list[Value] = [ConstInt(ty.I1, 0)] * len(into)
    if len(primals) > 1:
        out_of = same(unit, b, primals[1], shadows[1])
    rows = []
    for target, source in zip(into, out_of, strict=True):
        left = b.select(target, nothing, size)
        rows.append([b.select(source, nothing, left), b.select(source, left, nothing)])
    return rows


def clear(unit: Unit, b: Builder, primal: Value, shadow: Value, size: Value) -> None:
    """Fill shadow memory with zeros, unless it is the primal's."""
    fn = unit.declare("llvm.memset.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1)))
    rows = sizes(unit, b, size, [primal], [shadow])
    for at, (left, _) in zip(separate_shadows.each(b, shadow, unit.width), rows, strict=True):
        b.call(fn, [at, ConstInt(ty.I8, 0), left, ConstInt(ty.I1, 0)])


def clear_number(unit: Unit, b: Builder, primal: Value, shadow: Value, type_: Type) -> None:
    """Zero for the shadow of an integer, or of a vector of them, unless it is the primal's memory."""
    for at, yes in zip(separate_shadows.each(b, shadow, unit.width), same(unit, b, primal, shadow), strict=True):
        b.store(b.select(yes, b.load(type_, at, 1), zero_of(type_)), at, 1)


def clear_numbers(
    unit: Unit, b: Builder, instr: Instruction, where: tuple[int, int, int], at: Value, size: Value
) -> None:
    """Zero the numbers of copied memory."""
    period, fields = layout_of_copy(unit, instr, where)
    for offset, kind in fields:
        if isinstance(kind, ty.FloatType):
            fn = unit.runtime(f"irgrad.adjoint.clear.{kind}")
            b.call(fn, [at, size, ConstInt(ty.I64, period), ConstInt(ty.I64, offset)])


def memory_call(sweep: TangentSweep, instr: Instruction, effect: Effect, args: list[Value]) -> None:
    """Forward mode: release, copy and fill of shadow memory; `args` hold the shadows."""
    unit, b = sweep.unit, sweep.b
    where = effect.copy or effect.fill
    if where is None:
        assert effect.frees is not None
        primal, shadow = sweep.value(instr.args[effect.frees]), args[effect.frees]
        for at, yes in zip(separate_shadows.each(b, shadow, unit.width), same(unit, b, primal, shadow), strict=True):
            args[effect.frees] = b.select(yes, ConstZero(ty.PTR), at)
            sweep.like_call(instr, list(args))
        return
    places = [where[0], where[1]] if effect.copy is not None else [where[0]]
    shadows = [args[i] for i in places]
    amounts = sizes(unit, b, args[where[2]], [sweep.value(instr.args[i]) for i in places], shadows)
    kind = args[where[2]].type
    for pointers, (moved, cleared) in zip(separate_shadows.rows(b, shadows, unit.width), amounts, strict=True):
        for i, at in zip(places, pointers, strict=True):
            args[i] = at
        whole = b.add(moved, cleared, ())  # pointers move even where numbers are cleared
        args[where[2]] = whole if kind is ty.I64 else b.cast("trunc", whole, kind)
        sweep.like_call(instr, list(args))
        if effect.copy is not None:
            clear_numbers(unit, b, instr, effect.copy, pointers[0], cleared)


def reverse_copy(
    r: AdjointSweep, instr: Instruction, where: tuple[int, int, int], length: Value,
    moved: list[tuple[int, ty.FloatType]], period: int,
) -> None:  # fmt: skip
    """Reverse mode: the numbers of the target's adjoint move to the source's, or are cleared."""
    b, unit = r.b, r.unit
    ends = [instr.args[i] for i in where[:2] if unit.activity.pointer(instr.args[i])]
    if len(moved) > 1 and "memmove" in (instr.callee.name or ""):
        raise refuse(unit, instr, "memory of several numbers is moved under enzyme_runtime_activity", fix="memcpy")
    shadows = [r.recall.shadow(end) for end in ends]
    amounts = sizes(unit, b, length, [r.recall.value(end) for end in ends], shadows)
    for row, (both, cleared) in zip(separate_shadows.rows(b, shadows, unit.width), amounts, strict=True):
        for offset, kind in moved:
            place = [ConstInt(ty.I64, period), ConstInt(ty.I64, offset)]
            if len(row) > 1:
                b.call(unit.runtime(f"irgrad.adjoint.copy.{kind}"), [*row, both, *place])
            size = cleared if len(row) > 1 else both
            b.call(unit.runtime(f"irgrad.adjoint.clear.{kind}"), [row[0], size, *place])


def refuse_rule(unit: Unit, instr: Instruction) -> None:
    """Raises Unsupported for a rule that would write to shadows itself."""
    if unit.runtime_activity and any(unit.activity.pointer(arg) for arg in instr.args):
        raise refuse(unit, instr, "a derivative that is registered gets shadows under enzyme_runtime_activity",
                     because="it would write to them, whether or not they are the values' own memory",
                     fix="leave out enzyme_runtime_activity")  # fmt: skip
