"""Stores that replace a part of an active float, and reads of memory in which only floats of another type are stored.

    ((int *)&d)[1] = k;      the float is neither what it was nor a value of its own: refused
    ((int *)&d)[0] = 0;      only low bits of the mantissa change, like a rounding: the derivative stays
    cell.tag_is_int = k;     a member of a union, read through the same type again: not a float any more

The last two look like the first where the place within the float is not known; what tells a union is that somebody
reads the bytes in the way in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.activity.bits import Bits
from irgrad.engine.analyses.memory.byte_kinds import ACCESS, PTR
from irgrad.engine.analyses.memory.objects import Object, bits_of
from irgrad.engine.analyses.memory.strided_sets import Offsets, meets
from irgrad.engine.differentiate.shadow.copies import ADJOINT_ENDS
from irgrad.engine.differentiate.shared.refuse import BITS, refuse, refuse_bits
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Constant, Instruction, Value
from irgrad.engine.ir.opcodes import having

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

_FIX = "store whole floats, or give the other data memory of its own"
_LOW = {"half": 1, "bfloat": 0, "float": 2, "double": 6, "x86_fp80": 8, "fp128": 14}  # bytes of mantissa alone


def refuse_parts(unit: Unit) -> None:
    """Raise Unsupported for the first store or load that mixes the bytes of an active float with others."""
    _refuse_rounded(unit)
    active = unit.activity.active_objects
    if not active:
        return
    reads: dict[int, list[tuple[Offsets, ty.Type]]] | None = None
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            if instr.opcode == "store" and unit.pointers.of(instr.operands[1]) & active:
                if not _may_cut(unit, instr):
                    continue
                if reads is None:
                    reads = _reads(unit, active)
                if any(_cut(unit, instr, obj, reads) for obj in _active(unit, instr.operands[1])):
                    what = f"a part of an active float is overwritten with a `{instr.operands[0].type}`"
                    raise refuse(unit, instr, what, because=BITS, fix=_FIX)
            elif instr.opcode == "load" and instr.type.is_fp and unit.activity.value(instr):
                other = _stored_as(unit, instr)
                if other:
                    what = f"memory that holds `{other}` is read as `{instr.type}`"
                    raise refuse(unit, instr, what, because=BITS, fix="read it as what was stored in it")


def _refuse_rounded(unit: Unit) -> None:
    """Active floats that were rounded to integers and become a part of a float (its exponent) which matters: nothing
    active is stored in such memory, but what is read from it depends on the active arguments."""
    others = 0
    for obj in unit.pointers.objects:
        if unit.activity.useful_object(obj) and not unit.activity.object(obj):
            others |= 1 << obj.index
    stores = [
        instr for fn in unit.pointers.functions for instr in fn.instructions()
        if instr.opcode == "store" and instr.operands[0].type.scalar.is_int
        and not isinstance(instr.operands[0], Constant) and unit.pointers.of(instr.operands[1]) & others
        and _may_cut(unit, instr)
    ]  # fmt: skip
    bits = Bits(unit.activity) if stores else None
    reads: dict[int, list[tuple[Offsets, ty.Type]]] | None = None
    for store in stores:
        if bits is None or not bits.rounded(store.operands[0]):
            continue
        reads = _reads(unit, others) if reads is None else reads
        if any(_cut(unit, store, unit.pointers.objects[bit], reads)
               for bit in bits_of(unit.pointers.of(store.operands[1]) & others)):  # fmt: skip
            raise refuse_bits(unit, store, "an active float, rounded to an integer, becomes a part of a float")


def _active(unit: Unit, pointer: Value) -> Iterator[Object]:
    for bit in bits_of(unit.pointers.of(pointer) & unit.activity.active_objects):
        yield unit.pointers.objects[bit]


def _may_cut(unit: Unit, store: Instruction) -> bool:
    """Short values that carry no float of the program."""
    value = store.operands[0]
    if ADJOINT_ENDS in store.metadata:
        return False
    if value.type.is_aggregate or value.type is PTR or ty.store_size(value.type) > 8:
        return False
    return not (value.type.scalar.is_int and any(isinstance(k, ty.FloatType) for _, k in _carried(unit, value)))


def _carried(unit: Unit, value: Value) -> tuple[tuple[int, object], ...]:
    return unit.types.carriers.layout(value) if isinstance(value, Instruction) else ()


def _touched(unit: Unit, store: Instruction, obj: Object) -> Iterator[bool]:
    """For each way in which the store may hit a part of a float: whether more than low bits of its mantissa go."""
    value, pointer = store.operands
    size, places = ty.store_size(value.type), unit.types.ranges.places(pointer).get(obj.index)
    if places is None:
        return
    record = unit.types.record(obj.index)
    for where, kind, length, strength in record.evidence:
        if strength != ACCESS or not isinstance(kind, ty.FloatType) or kind is value.type.scalar:
            continue
        if where.stride % length and where.stride:
            continue  # an index that is not known in whole floats says nothing of the place within one
        for at in meets(places, where, 1 - length, size):
            whole = at >= 0 and at + length <= size
            if whole or (places.exact and record.overrules(places.start + at, length, where)):
                continue
            yield min(length, size - at) > _LOW.get(str(kind), 0)


def _cut(unit: Unit, store: Instruction, obj: Object, reads: dict[int, list[tuple[Offsets, ty.Type]]]) -> bool:
    if not any(_touched(unit, store, obj)):
        return False
    value, pointer = store.operands
    if value.type.is_fp and _taken_apart(unit, value.type):
        return False
    places, size = unit.types.ranges.places(pointer).get(obj.index), ty.store_size(value.type)
    return places is not None and not any(
        meets(places, where, size - ty.store_size(type_), 1)
        for where, type_ in reads.get(obj.index, ())
        if _alike(type_, value.type)
    )


def _taken_apart(unit: Unit, type_: ty.Type) -> bool:
    """LLVM knows what was stored, and takes the part that the other member of a union reads out of that value."""
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            source: Value = instr
            if instr.opcode != "bitcast" or instr.type is not type_:
                continue
            while isinstance(source, Instruction) and source.opcode in having("takes_part"):
                source = source.operands[0]
                if source.type.is_fp and ty.store_size(source.type) > ty.store_size(type_):
                    return True
    return False


def _alike(read: ty.Type, stored: ty.Type) -> bool:
    return read.scalar is stored.scalar or (
        read.scalar.is_int and stored.scalar.is_int and ty.store_size(read) >= ty.store_size(stored)
    )


def _reads(unit: Unit, mask: int) -> dict[int, list[tuple[Offsets, ty.Type]]]:
    found: dict[int, list[tuple[Offsets, ty.Type]]] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            if instr.opcode == "load" and unit.pointers.of(instr.operands[0]) & mask:
                if any(isinstance(k, ty.FloatType) and instr.type.scalar.is_int for _, k in _carried(unit, instr)):
                    continue
                for bit, places in unit.types.ranges.places(instr.operands[0]).items():
                    found.setdefault(bit, []).append((places, instr.type))
    return found


def _stored_as(unit: Unit, load: Instruction) -> str:
    """The float type that the memory behind a load holds, when it is another one and the only one."""
    mask = unit.pointers.of(load.operands[0])
    kinds = {kind for bit in bits_of(mask) for kind in unit.types.contents.kinds(unit.pointers.objects[bit])}
    if not kinds or not all(isinstance(kind, ty.FloatType) for kind in kinds) or load.type.scalar in kinds:
        return ""
    return str(min(map(str, kinds)))


__all__ = ["refuse_parts"]
