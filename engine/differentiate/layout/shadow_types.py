"""The types of shadows and adjoints: W lanes side by side, or apart."""

from __future__ import annotations

from functools import lru_cache

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type

__all__ = ["Apart", "shadow_type"]


class Apart(int):
    """A width whose shadow memories lie apart."""


@lru_cache(maxsize=4096, typed=True)
def shadow_type(type_: Type, width: int) -> Type:
    """Type of the shadow or adjoint of a value."""
    if isinstance(width, Apart) and not (type_ is ty.VOID or type_.is_aggregate or type_.is_fp):
        return ty.array(width, type_)
    if width == 1 or type_ is ty.VOID or type_.scalar.is_ptr:
        return type_
    if isinstance(type_, ty.FloatType):
        return ty.vector(width, type_)
    if isinstance(type_, ty.IntType):
        return ty.int_(type_.bits * width)
    if isinstance(type_, ty.VectorType):
        if type_.elem.is_float:
            return ty.vector(type_.count * width, type_.elem)
        return ty.vector(type_.count, shadow_type(type_.elem, width))
    if isinstance(type_, ty.StructType):
        return ty.struct(tuple(shadow_type(f, width) for f in type_.fields or ()), type_.packed)
    assert isinstance(type_, ty.ArrayType), type_
    return ty.array(type_.count, shadow_type(type_.elem, width))
