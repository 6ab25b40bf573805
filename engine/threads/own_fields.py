"""Fields of structs in an array: which of them are an iteration's own, and which it only reads first.

    for (i ...) { p[i].force = 0;  for (j ...) p[i].force += p[j].mass; }

Nobody else touches the force of `i`, and nobody in the loop writes a mass: the adjoints of the first are the
iteration's own, and those of the second are sums that may be made elsewhere. That is said of the address of the array,

    "irgrad-own-fields"="64:48-56"     of 64 bytes each, bytes 48 to 55 are an iteration's own; what it reads of others
                                       it has not written before

and the reverse sweep asks of each sum which bytes it adds to (`shadows.py`). What an address moves by, whatever the
iteration, is so many bytes, or moves within the field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.dependence import Access, Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Instruction, Value
from irgrad.engine.normalise.iterations import OWN_FIELDS
from irgrad.engine.threads.array_updates import behind, said_apart
from irgrad.engine.threads.copied_arrays import from_outside

__all__ = ["COMPARED", "OwnFields", "comes_first", "is_apart", "own_fields", "reads_through"]

COMPARED = 120
"""Accesses of a loop that are compared with each other, at most."""
_SMALL = 1 << 16


@dataclass(frozen=True, slots=True)
class OwnFields:
    """The fields that are an iteration's own: of structs of so many bytes, from a byte up to another one."""

    bytes: int
    fields: tuple[tuple[int, int], ...]

    def text(self) -> str:
        """What is said of the address of the array."""
        return f'{OWN_FIELDS}{self.bytes}:{",".join(f"{a}-{b}" for a, b in self.fields)}"'

    @staticmethod
    def said_of(argument: Argument) -> OwnFields | None:
        """What is said of an argument, if it is."""
        if OWN_FIELDS not in argument.attrs:
            return None
        size, _, fields = argument.attrs.partition(OWN_FIELDS)[2].partition('"')[0].partition(":")
        pairs = (field.split("-") for field in fields.split(","))
        return OwnFields(int(size), tuple((int(a), int(b)) for a, b in pairs))

    def holds(self, induction: Induction, access: Instruction, pointer: Value, argument: Argument) -> bool | None:
        """Whether what is accessed is an iteration's own; None where it may be so in part, or that is not known."""
        base, form = induction.address(pointer)
        part = _part(induction, form, self.bytes, _bytes(access)) if base is argument else None
        if part is None:
            return None
        if any(a <= part[0] and part[1] <= b for a, b in self.fields):
            return True
        return None if any(_meet(part, field) for field in self.fields) else False


def own_fields(
    dependence: Dependence, loop: Loop, value: Value, every: Sequence[Access], *, promised: bool
) -> OwnFields | None:  # fmt: skip
    """The fields that are an iteration's own behind an address from outside of a loop, if all else that it reads there
    comes first. every: what iterations do to memory; promised: see `is_apart`"""
    reads = reads_through(dependence, loop, value, every)
    own = [a for a in reads if is_apart(dependence, loop, a, every, promised=promised)]
    others = [a for a in reads if a not in own]
    induction = dependence.induction
    places = {a.instr: induction.address(a.pointer) for a in reads if a.pointer is not None}
    whole = len(places) < len(reads) or any(base is not value for base, _ in places.values())
    if not own or whole or not all(comes_first(dependence, loop, a, every) for a in others):
        return None
    forms = {instr: form for instr, (_, form) in places.items()}
    size = math.gcd(*(step for form in forms.values() for step in _steps(induction, form)))
    parts = [_part(induction, forms[a.instr], size, a.size) for a in own]
    rest = [_part(induction, forms[a.instr], size, a.size) for a in others]
    fields = [part for part in parts if part is not None]
    if None in parts or any(part is None or any(_meet(part, field) for field in fields) for part in rest):
        return None
    return OwnFields(size, tuple(sorted(set(fields))))


def reads_through(dependence: Dependence, loop: Loop, value: Value, every: Sequence[Access]) -> list[Access]:
    """What may read through an address from outside of a loop: calls, and reads by addresses that are made of it, or in
    a way that is not followed (pointers that a loop advances)."""
    objects = dependence.pointers.expand(dependence.pointers.of(value))

    def may_read(access: Access) -> bool:
        if access.pointer is None or access.writes:
            return access.pointer is None and (not access.objects or bool(access.objects & objects))
        given = from_outside(loop, access.pointer)
        unknown = isinstance(given, Instruction) and loop.contains(given.block)
        return given is value or (unknown and (not access.objects or bool(access.objects & objects)))

    return [access for access in every if may_read(access)]


def _steps(induction: Induction, form: Affine) -> list[int]:
    """What an address moves by in unknown numbers."""
    return [c for symbol, c in form.terms.items() if _most(induction, symbol) is None]


def _most(induction: Induction, symbol: object) -> int | None:
    bound = induction.max_trip_count(symbol) if isinstance(symbol, Loop) else None
    return bound.const if bound is not None and bound.certain and bound.const is not None and (
        bound.const < _SMALL) else None  # fmt: skip


def _part(induction: Induction, form: Affine, size: int, width: int) -> tuple[int, int] | None:
    """The bytes of a struct of so many that an access by an address of this form touches, of whichever struct."""
    if size < 1 or (not form.exact and size & (size - 1)):
        return None
    low = high = form.const
    for symbol, whole in form.terms.items():
        c, most = signed(whole), _most(induction, symbol)
        if c % size and most is None:
            return None
        if c % size and most is not None:
            low, high = low + min(c * most, 0), high + max(c * most, 0)
    begin = low % size
    end = begin + high - low + width
    return (begin, end) if end <= size else None


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])


def _bytes(access: Instruction) -> int:
    return ty.store_size(access.operands[0].type if access.opcode == "store" else access.type)


def comes_first(dependence: Dependence, loop: Loop, read: Access, every: Sequence[Access]) -> bool:
    """Whether nothing that is read may have been written before in the same iteration."""
    for store in (a for a in every if a.writes):
        said = store.pointer and read.pointer and said_apart(store.pointer, read.pointer)
        if said or dependence.relation(loop, store, read).never:
            continue
        first, second = store.instr, read.instr
        block = first.block
        assert block is not None and second.block is not None
        here = second.block is block and block.instructions.index(second) >= block.instructions.index(first)
        if here or second.block in behind(loop, first):
            return False
    return True


def is_apart(dependence: Dependence, loop: Loop, one: Access, others: Sequence[Access], *, promised: bool) -> bool:
    """Whether no access meets one in another iteration. promised: none meets a write there (a call that writes may read
    as well, which others may do at the same place)."""
    known = promised and one.instr.opcode == "store"
    return known or not any(dependence.relation(loop, one, b).carried for b in others
                            if not (promised and b.instr.opcode == "store"))  # fmt: skip
