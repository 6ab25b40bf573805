"""Prototypes in C of functions in IR, as messages and generated headers show them."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.ir import types as ty

__all__ = ["c_prototype"]

_C = {"double": "double", "float": "float", "i64": "long", "i32": "int", "i16": "short", "i8": "char", "i1": "_Bool",
      "ptr": "void *", "void": "void"}  # fmt: skip


def c_prototype(name: str, ftype: ty.FunctionType, names: Sequence[str]) -> str:
    """A prototype in C."""
    parts = []
    for type_, parameter in zip(ftype.params, names, strict=True):
        spelled = _C.get(str(type_), str(type_))
        parts.append(f"{spelled}{'' if spelled.endswith('*') or not parameter else ' '}{parameter}")
    return f"{_C.get(str(ftype.ret), str(ftype.ret))} {name}({', '.join(parts)});"
