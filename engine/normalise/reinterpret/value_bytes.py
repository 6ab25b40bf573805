"""Which value each byte of a value is part of: followed through casts, shifts, shuffles and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import mask_lanes
from irgrad.engine.ir.model import Block, ConstExpr, ConstInt, ConstUndef, ConstZero, Instruction, Value
from irgrad.engine.ir.opcodes import having

__all__ = ["LONGEST", "PLACES", "Byte", "Loaded", "Place", "ValueBytes", "place", "plain_size"]

LONGEST = 64
"""Bytes of a value that is looked at byte by byte."""
PLACES = having("places_bytes")

Byte = tuple[Value | None, int] | None
"""(value, which of its bytes); (None, b): the constant b; None: undefined."""
Place = tuple[Value, int]
"""(base address, distance from it)."""


def plain_size(type_: ty.Type) -> int:
    """Bytes of a number, pointer or vector without padding; 0 for anything else."""
    scalar = type_.scalar
    if isinstance(scalar, ty.IntType):
        each = scalar.bits // 8 if scalar.bits % 8 == 0 else 0
    elif scalar is ty.F80 or not (scalar.is_float or scalar.is_ptr):
        each = 0
    else:
        each = ty.store_size(scalar)
    return each * type_.count if isinstance(type_, ty.VectorType) else each


def place(address: Value) -> Place:
    at = 0
    while isinstance(address, Instruction | ConstExpr) and address.opcode == "getelementptr":
        by = _distance(address.elem, address.operands[1:])
        if by is None:
            break
        at += by
        address = address.operands[0]
    return address, at


def _distance(elem: ty.Type | None, indices: Sequence[Value]) -> int | None:
    if elem is None:
        return None
    total, type_ = 0, elem
    for n, index in enumerate(indices):
        if not isinstance(index, ConstInt):
            return None
        if n and isinstance(type_, ty.StructType):
            total += ty.field_offsets(type_)[index.value]
            type_ = (type_.fields or ())[index.value]
            continue
        if n:
            if not isinstance(type_, ty.ArrayType | ty.VectorType):
                return None
            type_ = type_.elem
        total += index.value * ty.size_of(type_)
    return total


@dataclass(slots=True)
class Loaded:
    """Where and when a load reads, and when each of its bytes was written before."""

    place: Place
    block: Block
    when: int
    since: list[int]


class ValueBytes:
    """The bytes of the values of one function."""

    def __init__(self) -> None:
        self._known: dict[Value, list[Byte]] = {}
        self.loads: dict[Value, Loaded] = {}

    def of(self, value: Value) -> list[Byte]:
        """What each byte of a value is part of; as often as not, the value itself."""
        if isinstance(value, ConstInt):
            return [(None, value.value >> 8 * i & 255) for i in range(plain_size(value.type))]
        if isinstance(value, ConstZero):
            return [(None, 0)] * plain_size(value.type)
        if isinstance(value, ConstUndef):
            return [None] * plain_size(value.type)
        if value not in self._known:
            found = None
            if isinstance(value, Instruction | ConstExpr) and (value.opcode in PLACES or value.opcode == "ptrtoint"):
                found = self._found(value)
            self._known[value] = found or [(value, i) for i in range(plain_size(value.type))]
        return self._known[value]

    def loaded(self, load: Instruction, found: list[Byte]) -> None:
        """What the bytes of a load were found to be."""
        self._known[load] = found

    def _found(self, value: Instruction | ConstExpr) -> list[Byte] | None:
        size = plain_size(value.type)
        if not 0 < size <= LONGEST or any(not plain_size(o.type) for o in value.operands[:1]):
            return None
        op, first = value.opcode, value.operands[0]
        if op == "bitcast":
            return self.of(first)
        if op in ("ptrtoint", "trunc"):
            return None if value.type.is_vector else [*self.of(first), *[(None, 0)] * size][:size]
        if op == "zext" and not value.type.is_vector:
            return [*self.of(first), *[(None, 0)] * (size - plain_size(first.type))]
        if op in ("shl", "lshr") and not value.type.is_vector:
            by = value.operands[1]
            if not isinstance(by, ConstInt) or by.value % 8 or by.value // 8 > size:
                return None
            zeros: list[Byte] = [(None, 0)] * (by.value // 8)
            whole = self.of(first)
            return [*whole[len(zeros) :], *zeros] if op == "lshr" else [*zeros, *whole[: size - len(zeros)]]
        if op == "or" and not value.type.is_vector:
            pairs = list(zip(self.of(first), self.of(value.operands[1]), strict=True))
            if any((None, 0) not in pair for pair in pairs):
                return None
            return [a if b == (None, 0) else b for a, b in pairs]
        if op == "shufflevector":
            return self._shuffled(value)
        if op in ("insertelement", "extractelement"):
            return self._element(value)
        return None

    def _shuffled(self, value: Instruction | ConstExpr) -> list[Byte]:
        first, second, mask = value.operands
        each, found = plain_size(value.type.scalar), list[Byte]()
        assert isinstance(value.type, ty.VectorType) and isinstance(first.type, ty.VectorType)
        for lane in mask_lanes(mask, value.type.count):
            if lane is None:
                found += [None] * each
            else:
                source = first if lane < first.type.count else second
                start = lane % first.type.count * each
                found += self.of(source)[start : start + each]
        return found

    def _element(self, value: Instruction | ConstExpr) -> list[Byte] | None:
        whole, where = value.operands[0], value.operands[-1]
        if not isinstance(where, ConstInt):
            return None
        each = plain_size(whole.type.scalar)
        start = where.value * each
        found = list(self.of(whole))
        if value.opcode == "extractelement":
            return found[start : start + each]
        found[start : start + each] = self.of(value.operands[1])
        return found
