"""Lanes whose shadow memories lie apart: W shadows of a pointer are W pointers, as a program's own arrays are.

    primal          T         <k x T>      iN           ptr          {A, B}
    shadow         <W x T>   <k W x T>   [W x iN]     [W x ptr]     {A', B'}

Numbers have the form that they have in `lanes.py`, so that arithmetic knows no difference; memory has that of a single
derivative, W times. What moves pointers is done lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.layout.shadow_types import Apart, shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstInt,
    ConstUndef,
    ConstZero,
    Instruction,
    Value,
)
from irgrad.engine.ir.types import Type

__all__ = ["each", "join", "join_constants", "lane", "lanewise", "load", "store"]


def lane(b: Builder, type_: Type, value: Value, j: int, width: int) -> Value:
    """The shadow of a value of this (primal) type in lane j."""
    if isinstance(value, ConstZero):
        return zero(type_)
    if isinstance(value, ConstUndef):
        return ConstUndef(type_, poison=True)
    if isinstance(type_, ty.FloatType):
        return b.extractelement(value, j)
    if isinstance(type_, ty.VectorType) and type_.elem.is_float:
        result: Value = ConstUndef(type_, poison=True)
        for i in range(type_.count):
            result = b.insertelement(result, b.extractelement(value, i * width + j), i)
        return result
    if type_.is_aggregate:
        whole: Value = ConstUndef(type_, poison=True)
        for i, part in enumerate(_parts(type_)):
            whole = b.insertvalue(whole, lane(b, part, b.extractvalue(value, i), j, width), i)
        return whole
    if isinstance(value, ConstAggregate):
        return value.elems[j]
    return b.extractvalue(value, j)


def join(b: Builder, type_: Type, parts: Sequence[Value]) -> Value:
    """The shadow in all lanes."""
    width = Apart(len(parts))
    result: Value = ConstUndef(shadow_type(type_, width), poison=True)
    if isinstance(type_, ty.FloatType):
        for j, part in enumerate(parts):
            result = b.insertelement(result, part, j)
    elif isinstance(type_, ty.VectorType) and type_.elem.is_float:
        for j, part in enumerate(parts):
            for i in range(type_.count):
                result = b.insertelement(result, b.extractelement(part, i), i * width + j)
    elif type_.is_aggregate:
        for i, kind in enumerate(_parts(type_)):
            result = b.insertvalue(result, join(b, kind, [b.extractvalue(part, i) for part in parts]), i)
    else:
        for j, part in enumerate(parts):
            result = b.insertvalue(result, part, j)
    return result


def join_constants(type_: Type, parts: Sequence[Constant]) -> Constant:
    """The same of constants."""
    whole = shadow_type(type_, Apart(len(parts)))
    if all(isinstance(part, ConstZero) for part in parts) or type_.is_fp:
        return ConstZero(whole)
    if not type_.is_aggregate:
        return ConstAggregate(whole, list(parts))
    fields = []
    for i, kind in enumerate(_parts(type_)):
        own = [p.elems[i] if isinstance(p, ConstAggregate) else zero(kind) for p in parts]
        fields.append(join_constants(kind, own))
    return ConstAggregate(whole, fields)


def _parts(type_: Type) -> list[Type]:
    if isinstance(type_, ty.StructType):
        return list(type_.fields or ())
    assert isinstance(type_, ty.ArrayType)
    return [type_.elem] * type_.count


def each(b: Builder, pointer: Value, width: int) -> list[Value]:
    """The shadow pointers of a pointer: one, or one for each lane that lies apart."""
    return [lane(b, ty.PTR, pointer, j, width) for j in range(width)] if isinstance(width, Apart) else [pointer]


def rows(b: Builder, pointers: Sequence[Value], width: int) -> list[list[Value]]:
    """Shadow pointers that belong together, lane by lane."""
    return [list(row) for row in zip(*(each(b, pointer, width) for pointer in pointers), strict=True)]


def first(b: Builder, pointer: Value, width: int) -> Value:
    """Of shadows that are the same in all lanes, one."""
    return each(b, pointer, width)[0]


def load(b: Builder, type_: Type, pointer: Value, width: int, align: int, metadata: dict[str, str]) -> Value:
    """The shadow of a value, from the memories of its lanes."""
    parts = [b.insert(Instruction("load", type_, [at], align=align, metadata=dict(metadata)))
             for at in each(b, pointer, width)]  # fmt: skip
    return join(b, type_, parts)


def store(
    b: Builder, type_: Type, value: Value, pointer: Value, width: int, align: int, metadata: dict[str, str]
) -> None:
    """Store the shadow of a value."""
    for j, at in enumerate(each(b, pointer, width)):
        part = lane(b, type_, value, j, width)
        b.insert(Instruction("store", ty.VOID, [part, at], align=align, metadata=dict(metadata)))


def moved(b: Builder, pointer: Value, offset: Value | int, width: int) -> Value:
    """The shadows of a pointer, some bytes further."""
    where = ConstInt(ty.I64, offset) if isinstance(offset, int) else offset
    return join(b, ty.PTR, [b.gep(ty.I8, at, where, flags=()) for at in each(b, pointer, width)])


def lanewise(b: Builder, instr: Instruction, operands: Sequence[Value], shadows: Sequence[int], width: int) -> Value:
    """An operation that moves pointers, done in each lane; `shadows`: the operands that are shadows."""
    parts = []
    for j in range(width):
        own = [lane(b, old.type, new, j, width) if i in shadows else new
               for i, (old, new) in enumerate(zip(instr.operands, operands, strict=True))]  # fmt: skip
        parts.append(b.insert(Instruction(instr.opcode, instr.type, own, flags=instr.flags, elem=instr.elem,
                                          indices=instr.indices)))  # fmt: skip
    return join(b, instr.type, parts)


def alloca(b: Builder, instr: Instruction, count: Sequence[Value], width: int) -> Value:
    """Stack memory for the shadows of an alloca of so many elements."""
    parts = [b.insert(Instruction("alloca", ty.PTR, list(count), elem=instr.elem, align=instr.align))
             for _ in range(width)]  # fmt: skip
    return join(b, ty.PTR, parts)
