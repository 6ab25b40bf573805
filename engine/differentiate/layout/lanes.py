"""Width: W tangents or cotangents at once, side by side in registers and in memory.

Shadow memory is scaled by W: the bytes [o, o + s) of the primal's memory correspond to the bytes [W o, W (o + s)) of
the shadow. There a float has its W lanes next to each other, a pointer is stored once, at the start; so every struct,
array or union keeps its shape, and the address of a shadow follows from the address of the primal by one factor. The
primal, the tape, index arithmetic and control flow are shared by all lanes.

    primal          T         <k x T>      iN         ptr    {A, B}
    shadow         <W x T>   <k W x T>    i(N W)      ptr    {A', B'}

An integer that carries floats or pointers holds their bits scaled in the same way. With W = 1 every type and every
instruction is that of a single derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.layout.leaves import fields_of, zero_of
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, element_type
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstFloat,
    ConstInt,
    ConstUndef,
    ConstZero,
    Instruction,
    Value,
    is_zero,
)
from irgrad.engine.ir.types import Type

LANES = "irgrad-lanes"  # attribute of derivatives whose shadows are plain floats and pointers
MOST = 64  # lanes of one derivative; more are done in strips by the caller
ALIGN = 64  # of shadow memory that the derivative allocates itself: a vector of lanes stays in one cache line
SHADOW_METADATA = frozenset(("tbaa", "dbg"))


# -- lanes of values ---------------------------------------------------------------------------------------------------


def _numbers(values: Sequence[int]) -> ConstAggregate:
    free = ConstUndef(ty.I32, poison=True)
    return ConstAggregate(ty.vector(len(values), ty.I32), [ConstInt(ty.I32, v) if v >= 0 else free for v in values])


def shuffle(b: Builder, x: Value, y: Value | None, lanes: Sequence[int]) -> Value:
    """The chosen lanes of two vectors (of one, when y is None)."""
    assert isinstance(x.type, ty.VectorType)
    second = y if y is not None else ConstUndef(x.type, poison=True)
    type_ = ty.vector(len(lanes), x.type.elem)
    return b.insert(Instruction("shufflevector", type_, [x, second, _numbers(lanes)]))


def splat(b: Builder, value: Value, width: int) -> Value:
    """A number of the primal in every lane; a vector has each of its elements repeated."""
    if width == 1:
        return value
    type_ = value.type
    target = ty.vector(width * (type_.count if isinstance(type_, ty.VectorType) else 1), type_.scalar)
    if isinstance(value, ConstZero):
        return ConstZero(target)
    if isinstance(value, ConstFloat | ConstInt):
        return ConstAggregate(target, [value] * width)
    if isinstance(value, ConstAggregate):
        return ConstAggregate(target, [e for e in value.elems for _ in range(width)])
    if isinstance(type_, ty.VectorType):
        return shuffle(b, value, None, [i for i in range(type_.count) for _ in range(width)])
    one = ty.vector(width, type_)
    return shuffle(b, b.insertelement(ConstUndef(one, poison=True), value, 0), None, [0] * width)


def condition(b: Builder, chosen: Value, type_: Type, width: int) -> Value:
    """The condition of a select, for operands of a shadow's type: one bit for all lanes, or one per element."""
    if width == 1 or not chosen.type.is_vector or not type_.is_fp:
        return chosen
    return splat(b, chosen, width)


def extract(b: Builder, vector: Value, lane: Value | int, width: int) -> Value:
    """Element `lane` of a vector of the primal's: W lanes of its shadow."""
    if width == 1 or not vector.type.is_fp:
        return b.extractelement(vector, lane)
    if isinstance(lane, ConstInt):
        lane = lane.value
    if isinstance(lane, int):
        return shuffle(b, vector, None, range(lane * width, (lane + 1) * width))
    result: Value = ConstUndef(ty.vector(width, vector.type.scalar), poison=True)
    for j, at in enumerate(_places(b, lane, width)):
        result = b.insertelement(result, b.extractelement(vector, at), j)
    return result


def part(b: Builder, vector: Value, first: int, count: int, width: int) -> Value:
    """Some elements of a vector of the primal's that follow each other: their shadow."""
    if count == 1:
        return extract(b, vector, first, width)
    return shuffle(b, vector, None, range(first * width, (first + count) * width))


def insert(b: Builder, vector: Value, part: Value, lane: Value | int, width: int) -> Value:
    """The shadow of a vector with the lanes of one element replaced."""
    if width == 1 or not vector.type.is_fp:
        return b.insertelement(vector, part, lane)
    assert isinstance(vector.type, ty.VectorType)
    if isinstance(lane, ConstInt):
        lane = lane.value
    if isinstance(lane, int):
        count = vector.type.count
        spread = shuffle(b, part, None, [i if i < width else -1 for i in range(count)]) if count != width else part
        first = lane * width
        chosen = [count + i - first if first <= i < first + width else i for i in range(count)]
        return shuffle(b, vector, spread, chosen)
    for j, at in enumerate(_places(b, lane, width)):
        vector = b.insertelement(vector, b.extractelement(part, j), at)
    return vector


def _places(b: Builder, lane: Value, width: int) -> list[Value]:
    first = b.mul(b.to_i64(lane, signed=False), ConstInt(ty.I64, width))
    return [b.add(first, ConstInt(ty.I64, j)) for j in range(width)]


def _spread_mask(mask: Value, type_: Type, width: int) -> Value:
    assert isinstance(type_, ty.VectorType)
    if isinstance(mask, ConstAggregate):
        elems: list[Constant] = []
        for e in mask.elems:
            for j in range(width):
                at = e.value if isinstance(e, ConstInt) else 0
                elems.append(e if isinstance(e, ConstUndef) else ConstInt(ty.I32, at * width + j))
        return ConstAggregate(ty.vector(len(elems), ty.I32), elems)
    if isinstance(mask, ConstZero):
        return _numbers([j for _ in range(type_.count) for j in range(width)])
    return ConstUndef(ty.vector(type_.count * width, ty.I32), poison=True)


def scale(width: int) -> int:
    """How many times as large shadow memory is as the primal's."""
    return width


# -- addresses ---------------------------------------------------------------------------------------------------------


def scaled(b: Builder, size: Value, width: int) -> Value:
    """A length or an offset in bytes of the primal's memory, in its shadow."""
    return size if scale(width) == 1 else b.mul(b.to_i64(size), ConstInt(ty.I64, width))


def moved(b: Builder, pointer: Value, offset: int, width: int) -> Value:
    """The shadow of a pointer, some bytes of the primal's memory further."""
    return _moved(b, pointer, offset * width, ())


def places(b: Builder, size: Value, period: int, offset: int, width: int) -> list[Value]:
    """Arguments of a copy helper (see helpers.py): bytes, period and offset in shadow memory."""
    return [scaled(b, size, width), ConstInt(ty.I64, period * scale(width)), ConstInt(ty.I64, offset * scale(width))]


def helpers(
    b: Builder, kind: Type, size: Value, period: int, offset: int, width: int
) -> list[tuple[str, list[Value]]]:
    """Endings of the copy helpers for floats of this type, and their arguments; one for all lanes, apart from long
    doubles, whose lanes are 16 bytes apart."""
    if scale(width) > 1 and kind is ty.F80:
        first, step = offset * width, ConstInt(ty.I64, period * width)
        return [(str(kind), [scaled(b, size, width), step, ConstInt(ty.I64, first + 16 * j)]) for j in range(width)]
    return [(f"{kind}{suffix(width)}", places(b, size, period, offset, width))]


def suffix(width: int) -> str:
    """Ending of the name of a copy helper."""
    return "" if scale(width) == 1 else f".x{width}"


def at_least(b: Builder, align: Value) -> Value:
    """The alignment of shadow memory for that of the primal's."""
    if isinstance(align, ConstInt):
        return ConstInt(ty.I64, max(align.value, ALIGN))
    less = b.icmp("ult", align, ConstInt(ty.I64, ALIGN))
    return b.select(less, ConstInt(ty.I64, ALIGN), align)


def gep(b: Builder, instr: Instruction, operands: list[Value], width: int) -> Value:
    """The shadow of a getelementptr on these operands: each index moves by W times as many bytes."""
    if width == 1:
        return b.insert(Instruction("getelementptr", instr.type, operands, elem=instr.elem, flags=instr.flags))
    assert instr.elem is not None
    address, pending, here = operands[0], 0, instr.elem
    for number, index in enumerate(operands[1:]):
        number_of = _constant(index)
        if number and isinstance(here, ty.StructType):
            assert number_of is not None
            pending += ty.field_offsets(here)[number_of]
            here = element_type(here, number_of)
            continue
        if number:
            here = element_type(here, 0)
        if number_of is not None:
            pending += number_of * ty.size_of(here)
            continue
        address = _moved(b, address, pending * width, instr.flags)
        pending = 0
        step = ty.array(ty.size_of(here) * width, ty.I8)
        whole = index.type if index.type.is_vector else address.type
        type_ = ty.vector(whole.count, ty.PTR) if isinstance(whole, ty.VectorType) else ty.PTR
        address = b.insert(Instruction("getelementptr", type_, [address, index], elem=step, flags=instr.flags))
    address = _moved(b, address, pending * width, instr.flags)
    if address.type is not instr.type:  # only constants, but a vector of pointers is wanted
        zeros = zero_of(ty.vector(instr.type.count, ty.I64))  # type: ignore[attr-defined]
        address = b.insert(Instruction("getelementptr", instr.type, [address, zeros], elem=ty.I8))
    return address


def _constant(index: Value) -> int | None:
    """The number of a constant index, the same in all lanes."""
    if isinstance(index, ConstInt):
        return index.value
    if is_zero(index):
        return 0
    if isinstance(index, ConstAggregate) and all(isinstance(e, ConstInt) for e in index.elems):
        found = {e.value for e in index.elems if isinstance(e, ConstInt)}
        return found.pop() if len(found) == 1 else None
    return None


def _moved(b: Builder, address: Value, by: int, flags: tuple[str, ...]) -> Value:
    if not by:
        return address
    operands = [address, ConstInt(ty.I64, by)]
    return b.insert(Instruction("getelementptr", address.type, operands, elem=ty.I8, flags=flags))


def constant_offset(elem: Type, indices: Sequence[Value]) -> int | None:
    """Bytes by which constant indices move a pointer."""
    total, here = 0, elem
    for number, index in enumerate(indices):
        at = _constant(index)
        if at is None:
            return None
        if number and isinstance(here, ty.StructType):
            total += ty.field_offsets(here)[at]
            here = element_type(here, at)
            continue
        if number:
            here = element_type(here, 0)
        total += at * ty.size_of(here)
    return total


# -- memory ------------------------------------------------------------------------------------------------------------


def load(
    b: Builder, type_: Type, pointer: Value, width: int, align: int = 0, metadata: dict[str, str] | None = None
) -> Value:
    """The shadow of a value of this (primal) type, from shadow memory. `align` is that of the primal's access."""
    align = access_align(type_, align)
    if width > 1 and type_ is ty.F80:
        result: Value = ConstUndef(shadow_type(type_, width), poison=True)
        for j in range(width):
            at = b.gep(ty.I8, pointer, 16 * j)
            lane = Instruction("load", type_, [at], align=align, metadata=dict(metadata or {}))
            result = b.insertelement(result, b.insert(lane), j)
        return result
    if width == 1 or not (_split(type_) or type_.is_aggregate):
        kind = shadow_type(type_, width)
        new = Instruction("load", kind, [pointer], align=align, metadata=dict(metadata or {}))
        return b.insert(new)
    result = ConstUndef(shadow_type(type_, width), poison=True)
    for i, (part, offset) in enumerate(_parts(type_, width)):
        piece = load(b, part, b.gep(ty.I8, pointer, offset), width, 1 if align == 1 else 0, metadata)
        result = b.insertvalue(result, piece, i) if type_.is_aggregate else b.insertelement(result, piece, i)
    return result


def store(
    b: Builder, type_: Type, value: Value, pointer: Value, width: int, align: int = 0,
    metadata: dict[str, str] | None = None,
) -> None:  # fmt: skip
    """Store the shadow of a value of this (primal) type."""
    align = access_align(type_, align)
    if width > 1 and type_ is ty.F80:
        for j in range(width):
            at = b.gep(ty.I8, pointer, 16 * j)
            b.insert(Instruction("store", ty.VOID, [b.extractelement(value, j), at], align=align,
                                 metadata=dict(metadata or {})))  # fmt: skip
        return
    if width == 1 or not (_split(type_) or type_.is_aggregate):
        new = Instruction("store", ty.VOID, [value, pointer], align=align,
                          metadata=dict(metadata or {}))  # fmt: skip
        b.insert(new)
        return
    for i, (part, offset) in enumerate(_parts(type_, width)):
        piece = b.extractvalue(value, i) if type_.is_aggregate else b.extractelement(value, i)
        store(b, part, piece, b.gep(ty.I8, pointer, offset), width, 1 if align == 1 else 0, metadata)


def widen_alloca(twin: Instruction, width: int) -> None:
    """Make a copied alloca the shadow memory of the original."""
    if width > 1:
        assert twin.elem is not None
        twin.elem = ty.array(ty.size_of(twin.elem) * width, ty.I8)
        twin.align = max(twin.align, ALIGN)


def _split(type_: Type) -> bool:
    """Vectors whose elements are not side by side in shadow memory."""
    return type_.is_vector and (type_.scalar.is_ptr or type_.scalar is ty.F80)


def _parts(type_: Type, width: int) -> list[tuple[Type, int]]:
    """Parts of an aggregate or vector, and their offsets in shadow memory."""
    if isinstance(type_, ty.StructType):
        return [(f, width * o) for f, o in zip(fields_of(type_), ty.field_offsets(type_), strict=False)]
    assert isinstance(type_, ty.ArrayType | ty.VectorType)
    return [(type_.elem, width * i * ty.size_of(type_.elem)) for i in range(type_.count)]


def access_align(type_: Type, align: int) -> int:
    """Alignment of an access: only that of one element is known of its address, whatever the primal's is. The two
    blocks of memory begin at different places, and a program may have aligned its pointer by hand."""
    natural = min(ty.align_of(type_), 8) if type_.is_aggregate else ty.align_of(type_.scalar)
    return min(align, natural) if align else natural


# -- instructions that move shadows ------------------------------------------------------------------------------------


def structural(b: Builder, instr: Instruction, operands: list[Value], width: int) -> Value | None:
    """The shadow of a data movement, on operands of which those that move are shadows; None where that is the same
    operation, on what the operands have become."""
    op = instr.opcode
    if op == "getelementptr":
        return gep(b, instr, operands, width)
    if op == "select":
        operands[0] = condition(b, operands[0], operands[1].type, width)
    elif op == "extractelement":
        return extract(b, operands[0], operands[1], width)
    elif op == "insertelement":
        return insert(b, operands[0], operands[1], operands[2], width)
    elif op == "shufflevector" and instr.type.is_fp:
        operands[2] = _spread_mask(operands[2], instr.type, width)
    return None
