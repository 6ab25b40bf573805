"""Pointers that are copied in pieces smaller than an address: byte by byte, or as halves.

The analyses follow a pointer through values that hold all of it. Copied in pieces (a swap of bytes in a sort of the
program's own), it would be missed in the memory that it is copied to, and with it every float that is reached from
there. So that is refused where floats may be behind the pointer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import DECLARED, PTR
from irgrad.engine.analyses.memory.objects import bits_of, is_tape
from irgrad.engine.analyses.memory.strided_sets import meets, multiples
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstExpr, ConstInt, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE, SHIFTS, having, of_kind

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.strided_sets import Offsets
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["refuse_pieces"]

_SIZE = ty.store_size(ty.PTR)
_MOVES = (having("moves_bits") | SHIFTS | BITWISE) - of_kind("aggregate")


def refuse_pieces(unit: Unit) -> None:
    """Raise Unsupported for the first pointer to floats that is copied in pieces."""
    tbaa = Tbaa(unit.module)
    covered: dict[tuple[int, Offsets], set[int]] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            if instr.opcode == "inttoptr":
                whole = _in_pieces(unit, instr.operands[0], tbaa)
            else:
                whole = instr.opcode == "store" and _complete(unit, instr, tbaa, covered)
            if whole:
                raise refuse(
                    unit, instr, "a pointer is copied in pieces",
                    because="what it points to is not followed through parts of an address",
                    fix="copy with memcpy, as whole structs, or as pointers",
                )  # fmt: skip


def _complete(unit: Unit, store: Instruction, tbaa: Tbaa, covered: dict[tuple[int, Offsets], set[int]]) -> bool:
    """Whether a store completes a pointer in memory that was stored in pieces."""
    value, address = store.operands
    size = ty.store_size(value.type)
    if not (value.type.scalar.is_int or value.type.is_fp) or _is_number(store, tbaa):
        return False
    goals = [goal for goal in _pointers_at(unit, address, size, store.align)
             if size <= _SIZE or not 0 <= goal[2] <= size - _SIZE]  # fmt: skip
    if not goals or not _in_pieces(unit, value, tbaa):
        return False
    for bit, where, distance in goals:
        if is_tape(unit.pointers.objects[bit]):  # written by a derivative, value by value, and whole
            continue
        done = covered.setdefault((bit, where), set())
        done |= {at - distance for at in range(size)} & set(range(_SIZE))
        if len(done) == _SIZE:
            return True
    return False


def _is_number(access: Instruction, tbaa: Tbaa) -> bool:
    """The source calls what is loaded or stored a number."""
    tag = access.metadata.get("tbaa")
    return bool(tag) and tbaa.kind(tag or "") is not None


def _pointers_at(unit: Unit, address: Value, size: int, align: int) -> Iterator[tuple[int, Offsets, int]]:
    """(object, places, distance) of the pointers that an access may touch; one that may be anywhere is aligned."""
    ranges = unit.types.ranges
    for bit, anywhere in ranges.places(address).items():
        places = ranges.spots.held.aligned(bit, anywhere, align)
        if places is None:
            continue
        for distance, (where, kind, _, strength) in unit.types.record(bit).near(places, size):
            if kind is PTR and strength != DECLARED:
                aligned = multiples(where, _SIZE) if where.stride == 1 else where
                if aligned is not None and distance in meets(places, aligned, 1 - _SIZE, size):
                    yield bit, where, distance


def _in_pieces(unit: Unit, value: Value, tbaa: Tbaa) -> bool:
    """Whether moves of bits make a value of parts of addresses behind which floats may be."""
    seen, work = {value}, [value]
    while work:
        value = work.pop()
        if isinstance(value, ConstExpr):  # the cast of an address to fewer bits is a part of it
            short = value.type.is_int and ty.store_size(value.type) < _SIZE
            if short and any(_leads_to_floats(unit, unit.pointers.of(o)) for o in value.operands):
                return True
            continue
        if not isinstance(value, Instruction):
            continue
        if value.opcode == "load" and _part_of_pointer(unit, value, tbaa):
            return True
        if value.opcode not in _MOVES or _takes_flags(value):
            continue
        operands = value.operands[1:] if value.opcode == "select" else value.operands
        lost = not unit.pointers.of(value)  # in what is too short for an address, and in shifts
        if lost and any(_leads_to_floats(unit, unit.pointers.of(o)) for o in operands if not _is_distance(unit, o)):
            return True
        fresh = [operand for operand in operands if operand not in seen]
        seen.update(fresh)
        work += fresh
    return False


def _is_distance(unit: Unit, value: Value) -> bool:
    """The distance of two addresses: part of it is a number."""
    return isinstance(value, Instruction) and value.opcode == "sub" and all(map(unit.pointers.of, value.operands))


def _takes_flags(value: Instruction) -> bool:
    """A mask leaves so few bits of an address that nobody puts it together of such."""
    mask = value.operands[-1] if value.opcode == "and" else None
    return isinstance(mask, ConstInt) and 0 <= mask.value < _SIZE


def _part_of_pointer(unit: Unit, load: Instruction, tbaa: Tbaa) -> bool:
    size = ty.store_size(load.type)
    if _is_number(load, tbaa):
        return False
    found = {bit for bit, _, distance in _pointers_at(unit, load.operands[0], size, load.align)
             if size < _SIZE or _cut(unit, load, bit, distance, size)}  # fmt: skip
    contents = unit.pointers.contents
    return any(_leads_to_floats(unit, contents(unit.pointers.objects[bit])) for bit in found)


def _cut(unit: Unit, load: Instruction, bit: int, distance: int, size: int) -> bool:
    """A load of many bytes is known to begin or end inside of a pointer."""
    return unit.types.ranges.places(load.operands[0])[bit].exact and not 0 <= distance <= size - _SIZE


def _leads_to_floats(unit: Unit, objects: int) -> bool:
    for bit in bits_of(objects):
        obj = unit.pointers.objects[bit]
        constant = isinstance(obj.site, GlobalVariable) and obj.site.constant
        if obj.kind != "function" and not constant and unit.types.may_hold_floats(obj):
            return True
    return False
