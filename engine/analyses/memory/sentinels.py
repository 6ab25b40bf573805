"""Ends of lists and trees of the standard library that lie in variables: no elements, and nothing behind them is one's.

    struct Part { double weight; std::map<int, double> ordered; long count; } part;

A node of the tree leads up to the `__tree_end_node` in `part`, and to the analyses any pointer to a node may be that.
What follows the links of a node there would be `count`. But of a pointer to a part of a variable C++ reaches that part,
and nobody but the library has pointers to parts of its own types: it asks whether it has come to the end. Parts that
begin at one place (a list is one, and its first link) count as the largest of them.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.tbaa import is_reserved_name
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import GlobalVariable, Instruction
from irgrad.engine.ir.types import Type

__all__ = ["end_of_sentinel"]


def end_of_sentinel(obj: Object, place: int) -> int | None:
    """Where the part of a variable ends that begins at a place, if it is of a type of the library's own."""
    type_: Type | None = None
    if obj.kind == "alloca" and isinstance(obj.site, Instruction):
        type_ = obj.site.elem
    elif isinstance(obj.site, GlobalVariable):
        type_ = obj.site.value_type
    at = 0
    while type_ is not None and at != place:
        type_, at = _part(type_, at, place)
    while isinstance(type_, ty.StructType):
        if is_reserved_name(type_.name or ""):
            return at + ty.size_of(type_)
        first = type_.fields[0] if type_.fields else None
        type_ = first if first is not None and ty.size_of(first) == ty.size_of(type_) else None
    return None


def _part(type_: Type, at: int, place: int) -> tuple[Type | None, int]:
    """The field or element that a place lies in, and where that begins."""
    if isinstance(type_, ty.StructType) and type_.fields:
        rows = [(field, at + offset) for field, offset in zip(type_.fields, ty.field_offsets(type_), strict=False)]
        found = [(field, start) for field, start in rows if start <= place < start + ty.size_of(field)]
        return found[-1] if found else (None, at)
    if isinstance(type_, ty.ArrayType) and (size := ty.size_of(type_.elem)):
        number = (place - at) // size
        return (type_.elem, at + number * size) if 0 <= number < type_.count else (None, at)
    return None, at
