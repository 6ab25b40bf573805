"""Numbers that the function moves and never looks at: of copied memory that a call hands over, what each byte is.

    typedef struct { int cell; double charge; } particle;
    void sort(particle *p, int n) { ... memcpy(&t, p + i, sizeof t) ... p[i].cell ... }

What the types of memory are follows from what a program does with it. In memory that nobody else sees, what is never
read has no derivative; but whoever called has numbers in his, and expects their derivatives to move along. Where
neither the call says where they lie (`enzyme/float_memory.py`, signatures) nor the function reads them, the adjoint of
a copy is not known. Forward mode copies shadows as they are, and only needs to have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR, Kind, kind_size
from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.analyses.memory.tbaa import floats_said
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["refuse_unseen"]

_WORD = 8
_LISTED = 4096  # bytes of a copy that is looked at place by place


def refuse_unseen(unit: Unit) -> None:
    """Raise Unsupported for the first copy that may move numbers of which nothing is known."""
    given = _given(unit)
    copies = list(_copies(unit)) if given else []
    outside = _closed(given, [(unit.pointers.of(source), unit.pointers.of(target)) for _, target, source, _ in copies])
    back = _closed(given, [(unit.pointers.of(target), unit.pointers.of(source)) for _, target, source, _ in copies])
    for call, target, source, size in copies:
        if not (unit.pointers.of(source) & outside and unit.pointers.of(target) & back):
            continue
        ends = unit.pointers.of(source) | unit.pointers.of(target)
        if unit.mode != "reverse" and not ends & ~unit.activity.shadowed_mask:
            continue
        if _unknown(unit, (target, source), size):
            raise refuse(
                unit, call, "memory is copied of which it is not known where its numbers lie",
                because="the caller's memory may hold numbers there, and the function looks at none of them",
                fix="copy number by number, or structs by assignment; or let the caller's array be a variable of its "
                    "own type in the function that calls the derivative",
            )  # fmt: skip


def _given(unit: Unit) -> int:
    """The memory of the caller that numbers are differentiated in, and of which he does not say what it holds."""
    types = unit.types
    mask = 0
    for obj in unit.activity.sources:
        known = obj.index in types.buffers or types.described >> obj.index & 1
        mask |= (not known) << obj.index
    return mask


def _copies(unit: Unit) -> Iterator[tuple[Instruction, Value, Value, Value]]:
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            effect = unit.pointers.effect(instr) if instr.is_call else None
            if effect is not None and effect.copy is not None:
                target, source, size = (instr.args[i] for i in effect.copy)
                yield instr, target, source, size


def _closed(mask: int, ways: list[tuple[int, int]]) -> int:
    """A set of objects with those that are reached by copies."""
    while True:
        before = mask
        for start, end in ways:
            mask |= end if start & mask else 0
        if mask == before:
            return mask


def _unknown(unit: Unit, ends: tuple[Value, Value], size: Value) -> bool:
    """Whether there is room for numbers among the bytes that move: a word without any evidence, or where all that is
    known are floats, less than that."""
    kinds: list[tuple[int, Kind]] = []
    if isinstance(size, ConstInt) and 0 <= size.value <= _LISTED:
        length = size.value
        for end in ends:
            kinds += unit.types.access(end, length)
    else:
        patterns = [unit.types.region(end) for end in ends]
        length = max(p.period for p in patterns)
        for p in patterns:
            kinds += [(at + k, kind) for k in range(0, length, p.period) for at, kind in p.fields] if p.period else []
    if not kinds:
        return not _held(unit, ends) and floats_said(unit.module, ends) is None
    known = {at + k for at, kind in kinds for k in range(kind_size(kind))}
    least = 1 if all(isinstance(kind, ty.FloatType) for _, kind in kinds) else _WORD
    return any(all(at + k not in known for k in range(least)) for at in range(0, length - least + 1, least))


def _held(unit: Unit, ends: tuple[Value, Value]) -> bool:
    """Whether floats are known in this memory, so that a copy moves as many as there is room for."""
    mask = unit.pointers.of(ends[0]) | unit.pointers.of(ends[1])
    held = {kind for bit in bits_of(mask) for kind in unit.types.holds(unit.pointers.objects[bit])}
    return any(kind is not INT and kind is not PTR for kind in held)
