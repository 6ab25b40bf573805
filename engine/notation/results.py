"""What a differentiated function returns, as the notation sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms.leaves import has_float

__all__ = ["Result", "floats_of", "ones", "result_of", "room_of"]

_SRET = re.compile(r"\bsret\((%(?:\"[^\"]*\"|[-\w$.]+))\)")
_ONE = {"double": "1.0", "float": "1.0", "half": "0xH3C00", "bfloat": "0xR3F80",
        "x86_fp80": "0xK3FFF8000000000000000"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """The type of a function's result, None where there is none.

    `active`: it holds numbers; `memory`: the function stores it through its first parameter (a large struct).
    """

    kind: Type | None
    active: bool
    memory: bool

    @property
    def pointer(self) -> bool:
        """The result is a pointer, which has a shadow."""
        return isinstance(self.kind, ty.PtrType)


def result_of(function: Function, module: Module) -> Result:
    """The result of a function."""
    if function.args and "sret" in function.args[0].attrs:
        kind = _stored(function.args[0].attrs, module)
        return Result(kind, kind is not None and has_float(kind), True)
    ret = function.ftype.ret
    return Result(None, False, False) if ret is ty.VOID else Result(ret, has_float(ret), False)


def _stored(attributes: str, module: Module) -> Type | None:
    """The type of a result that is stored through a parameter with these attributes."""
    found = _SRET.search(attributes)
    return module.types.get(found[1]) if found is not None else None


def room_of(attributes: str, module: Module) -> int:
    """Bytes that a call has for a result that is stored through an argument with these attributes; 0: not known."""
    kind = _stored(attributes, module)
    return ty.size_of(kind) if kind is not None else 0


def floats_of(type_: Type, offset: int = 0) -> Iterator[tuple[int, ty.FloatType]]:
    """The numbers in a value of this type: (offset in bytes, type)."""
    match type_:
        case ty.FloatType():
            yield offset, type_
        case ty.StructType(fields=fields):
            for part, at in zip(fields or (), ty.field_offsets(type_), strict=False):
                yield from floats_of(part, offset + at)
        case ty.ArrayType(count=count, elem=elem) | ty.VectorType(count=count, elem=elem):
            for i in range(count):
                yield from floats_of(elem, offset + i * ty.size_of(elem))
        case _:
            return


def ones(type_: ty.FloatType) -> str:
    """The number one."""
    return _ONE.get(str(type_), "1.0")
