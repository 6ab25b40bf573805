"""Which floats and pointers a memcpy, memmove or memset touches, and the adjoint of several fields that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, Kind, Layout
from irgrad.engine.analyses.memory.objects import bits_of, said_alignment
from irgrad.engine.analyses.memory.tbaa import floats_said
from irgrad.engine.analyses.memory.text_copies import copies_text
from irgrad.engine.analyses.types.records import shortest
from irgrad.engine.differentiate.layout.lanes import access_align
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.shared.refuse import refuse_uses
from irgrad.engine.differentiate.shared.sweeps import AdjointSweep
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

LISTED = 4096  # copies of up to this many bytes are described byte by byte when no shorter period is known


def layout_of_copy(unit: Unit, instr: Instruction, where: tuple[int, int, int]) -> tuple[int, list[tuple[int, Kind]]]:
    """(period in bytes, [(offset, kind)]) of the memory that the call writes.

    Raises Unsupported where the same bytes of a copy are known as a float and as something else. A fill may leave them
    out: no byte of it is a pointer afterwards, and its adjoint is zero whatever it was.
    """
    target, size = instr.args[where[0]], instr.args[where[2]]
    ends = [target] if only_ends(unit, instr, where) else [target, instr.args[where[1]]]
    if isinstance(size, ConstInt) and 0 <= size.value <= 256:
        period, fields = _listed(unit, instr, ends, size.value)
        return (period, fields) if fields else _said(unit, ends) or (period, fields)
    text = instr.is_call and copies_text(unit.module, instr, where[2])
    patterns = [unit.types.region(p, text=text, align=said_alignment(instr, p)) for p in ends]
    known = [p for p in patterns if p.period and p.fields]
    if not known:
        if isinstance(size, ConstInt) and size.value <= LISTED:
            period, fields = _listed(unit, instr, ends, size.value)
            return (period, fields) if fields else _said(unit, ends) or (period, fields)
        return _whole(unit, instr, ends, text) or _said(unit, ends) or (1, [])
    period = max(p.period for p in known)
    spread = [
        {offset + k: kind for k in range(0, period, p.period) for offset, kind in p.fields}
        for p in known
        if period % p.period == 0
    ]
    fields = _merged(unit, instr, ends, spread)
    moved = None if any(isinstance(kind, ty.FloatType) for _, kind in fields) else _whole(unit, instr, ends, text)
    return moved or (period, fields)


def _whole(
    unit: Unit, instr: Instruction, ends: list[Value], text: bool
) -> tuple[int, list[tuple[int, Kind]]] | None:
    """The floats of a copy that nobody saw at these places, where its memory holds floats: as many as there is room
    for. One pointer may mean an array of floats and one of integers; the shadow of an integer is zero, and stays it."""
    if len(ends) == 1:
        return None
    masks = [unit.types.texts(end) if text else bits_of(unit.pointers.of(end)) for end in ends]
    objects = [unit.pointers.objects[bit] for mask in masks for bit in mask]
    held = {kind for obj in objects for kind in unit.types.holds(obj)}
    floats = [kind for kind in held if isinstance(kind, ty.FloatType)]
    if not floats:
        return None
    if len(floats) > 1 or not held <= {INT, *floats}:
        raise refuse_uses(unit, instr, ends)
    return ty.size_of(floats[0]), [(0, floats[0])]


def _said(unit: Unit, ends: list[Value]) -> tuple[int, list[tuple[int, Kind]]] | None:
    """The floats of a copy of which nothing is known but the types of its pointers."""
    kind = floats_said(unit.module, ends) if len(ends) > 1 else None
    return None if kind is None else (ty.size_of(kind), [(0, kind)])


def _listed(unit: Unit, instr: Instruction, ends: list[Value], size: int) -> tuple[int, list[tuple[int, Kind]]]:
    return _repeating(size, _merged(unit, instr, ends, [dict(unit.types.access(p, size)) for p in ends]))


def _repeating(size: int, fields: list[tuple[int, Kind]]) -> tuple[int, list[tuple[int, Kind]]]:
    """The floats and pointers with their true period: each field is moved in one direction over its whole length,
    which is only right for overlapping memory when fields of one kind that follow each other are one field."""
    kept = tuple(f for f in fields if isinstance(f[1], ty.Type))
    pattern = shortest(max(size, 1), kept)
    return pattern.period, list(pattern.fields)


def _merged(
    unit: Unit, instr: Instruction, ends: list[Value], layouts: list[dict[int, Kind]]
) -> list[tuple[int, Kind]]:
    merged: dict[int, Kind] = {}
    for layout in layouts:
        for offset, kind in layout.items():
            before = merged.get(offset)
            if kind is CONFLICT or (before is not None and before is not kind and _matters(before, kind)):
                if len(ends) == 1:
                    continue
                raise refuse_uses(unit, instr, ends, before, kind)
            if before is None or not isinstance(before, ty.Type):
                merged[offset] = kind
    return sorted(merged.items())


ADJOINT_ENDS = "irgrad.adjoint_ends"
"""Metadata of a store of zeros to shadow memory where the primal stores: it cuts no float that the primal did not."""


def clear_shadow(b: Builder, type_: ty.Type, place: Value, align: int) -> None:
    """The adjoint of a value of this type ends here: zero, in shadow memory. align: of the primal's access."""
    align = access_align(type_, align)
    marks = {**b.metadata, ADJOINT_ENDS: "!{}"}
    b.insert(Instruction("store", ty.VOID, [zero_of(type_), place], align=align, metadata=marks))


def floats_ended(layout: Layout, stored: ty.Type) -> list[tuple[int, ty.Type]]:
    """The places whose adjoints end where an integer is stored: floats; all of it in a union, whose members overlap."""
    if any(kind is CONFLICT for _, kind in layout):
        return [(0, stored)]
    return [(at, kind) for at, kind in layout if isinstance(kind, ty.FloatType)]


def only_ends(unit: Unit, instr: Instruction, where: tuple[int, int, int]) -> bool:
    """A memset, or a copy from memory without shadow: adjoints of the target end, and none flows on."""
    source = instr.args[where[1]]
    return where[0] == where[1] or not source.type.is_ptr or not unit.activity.pointer(source)


def _matters(a: Kind, b: Kind) -> bool:
    """Two kinds that cannot both be right, one of them a float or a pointer on each side."""
    return isinstance(a, ty.Type) and isinstance(b, ty.Type)


__all__ = ["Value", "floats_ended", "layout_of_copy", "only_ends"]


def move_fields(
    r: AdjointSweep, target: Value, source: Value, length: Value, period: int, moved: list[tuple[int, ty.FloatType]]
) -> None:
    """Several fields of memory that may overlap: one after the other would meet what the one before has written."""
    declare, b = r.unit.declare, r.b
    length = b.to_i64(length, signed=False)
    wide = r.unit.memory.scaled(b, length)
    twin = b.call(declare("malloc", ty.function(ty.PTR, (ty.I64,)), "", "noalias"), [wide])
    whole = declare("llvm.memcpy.p0.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1)))
    b.call(whole, [twin, target, wide, ConstInt(ty.I1, 0)])
    places = [p for offset, kind in moved for p in r.unit.memory.helpers(b, kind, length, period, offset)]
    for name, extra in places:
        b.call(r.unit.runtime(f"irgrad.adjoint.clear.{name}"), [target, *extra])
    for name, extra in places:
        b.call(r.unit.runtime(f"irgrad.adjoint.copy.{name}"), [twin, source, *extra])
    b.call(declare("free", ty.function(ty.VOID, (ty.PTR,))), [twin])
