"""Arithmetic on values of any shape: scalars, vectors, structs and arrays, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import Constant, ConstInt, Value, is_zero
from irgrad.engine.ir.types import Type

REASSOCIATE = ("reassoc", "nsz", "contract")


def fields_of(type_: Type) -> list[Type]:
    """The parts of a struct or array."""
    if isinstance(type_, ty.StructType):
        return list(type_.fields or ())
    assert isinstance(type_, ty.ArrayType)
    return [type_.elem] * type_.count


def has_float(type_: Type) -> bool:
    """Whether any leaf is a float."""
    if type_.is_aggregate:
        return any(map(has_float, fields_of(type_)))
    return type_.is_fp


def has_pointer(type_: Type) -> bool:
    """Whether any leaf is a pointer."""
    if type_.is_aggregate:
        return any(map(has_pointer, fields_of(type_)))
    return type_.scalar.is_ptr


def floats_of(type_: Type, offset: int = 0) -> Iterator[tuple[int, int]]:
    """(first byte, bytes) of the floats in a type; those of an array that holds nothing else are one."""
    if type_.scalar.is_fp or (isinstance(type_, ty.ArrayType) and type_.elem.scalar.is_fp):
        yield offset, ty.size_of(type_)
    elif isinstance(type_, ty.StructType):
        for field, at in zip(type_.fields or (), ty.field_offsets(type_), strict=False):
            yield from floats_of(field, offset + at)
    elif isinstance(type_, ty.ArrayType):
        for i in range(type_.count):
            yield from floats_of(type_.elem, offset + i * ty.size_of(type_.elem))


def zero_of(type_: Type) -> Constant:
    """A zero of this type."""
    return zero(type_)


def is_nothing(b: Builder, amount: Value) -> Value:
    """Whether an adjoint is zero; that of an integer that carries a float too."""
    return (b.fcmp("oeq", amount, zero_of(amount.type)) if amount.type.is_fp
            else b.icmp("eq", amount, zero_of(amount.type)))  # fmt: skip


def add(b: Builder, x: Value, y: Value) -> Value:
    """x + y over the float leaves; other leaves are those of x."""
    if is_zero(x):
        return y
    if is_zero(y):
        return x
    if x.type.is_fp:
        return b.binary("fadd", x, y)
    if not has_float(x.type):
        return x
    result = x
    for i, part in enumerate(fields_of(x.type)):
        if has_float(part):
            total = add(b, b.extractvalue(x, i), b.extractvalue(y, i))
            result = b.insertvalue(result, total, i)
    return result


def neg(b: Builder, x: Value) -> Value:
    """-x."""
    return x if is_zero(x) else b.fneg(x)


def lanes(type_: Type) -> Iterator[ConstInt]:
    """Lane numbers of a vector type."""
    assert isinstance(type_, ty.VectorType)
    for i in range(type_.count):
        yield ConstInt(ty.I64, i)
