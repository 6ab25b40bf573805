"""What a differentiated function returns, as the notation sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.byte_kinds import CONFLICT
from irgrad.engine.differentiate.layout.leaves import has_float, has_pointer
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Function, Instruction, Module
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import Unsupported

__all__ = ["Found", "Result", "floats_of", "numbers_in", "ones", "result_of", "room_of"]

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
        """The result is a pointer, which has a shadow, or holds some."""
        return self.kind is not None and has_pointer(self.kind)

    @property
    def packed(self) -> bool:
        """Integers are in it, which may carry numbers: compilers return `struct { float x; int n; }` in one."""
        return self.kind is not None and _may_carry(self.kind)

    @property
    def registers(self) -> tuple[Type, ...]:
        """What a call that is given a value of this kind has in place of it."""
        if self.kind is None or self.memory:
            return () if self.kind is None else (ty.PTR,)
        return (self.kind.fields or ()) if isinstance(self.kind, ty.StructType) else (self.kind,)


def _may_carry(type_: Type) -> bool:
    if isinstance(type_, ty.StructType):
        return any(map(_may_carry, type_.fields or ()))
    if isinstance(type_, ty.ArrayType):
        return _may_carry(type_.elem) or (type_.elem.is_int and type_.count > 1)
    return type_.scalar.is_int and ty.store_size(type_) > 1


@dataclass(frozen=True, slots=True)
class Found:
    """The numbers in a result: (offset in bytes, type), those that integers carry included. `problem`: where something
    active is in the result and it is not known as what; a cotangent of ones cannot be made then."""

    numbers: tuple[tuple[int, ty.FloatType], ...] = ()
    problem: Unsupported | None = None


def numbers_in(facts: Facts, result: Result, slot: Argument) -> Found:
    """The numbers in a result; `slot`: the root's argument that it is stored through."""
    assert result.kind is not None
    stated = dict(floats_of(result.kind))
    found = facts.types.access(slot, ty.size_of(result.kind)) if result.packed else ()
    for at, kind in found:
        if isinstance(kind, ty.FloatType) and not _overlaps(at, kind, stated):
            stated[at] = kind
    stores = [i for fn in facts.pointers.functions for i in fn.instructions() if i.opcode == "store" and result.packed]
    problem = next((p for store in stores if (p := _unknown(facts, store, slot)) is not None), None)
    return Found(tuple(sorted(stated.items(), key=lambda entry: entry[0])), problem)


def _overlaps(at: int, kind: ty.FloatType, known: dict[int, ty.FloatType]) -> bool:
    return any(at < other + ty.store_size(type_) and other < at + ty.store_size(kind) for other, type_ in known.items())


def _unknown(facts: Facts, store: Instruction, slot: Argument) -> Unsupported | None:
    """An active integer in the result of which nobody knows which numbers it carries."""
    value, address = store.operands
    if not value.type.scalar.is_int or not facts.activity.value(value):
        return None
    if not facts.pointers.of(address) >> facts.pointers.object_of[slot].index & 1:
        return None
    here = facts.types.access(address, ty.store_size(value.type))
    if facts.types.carriers.floats(value) and not any(kind is CONFLICT for _, kind in here):
        return None
    return Unsupported(
        "an integer in the result may carry numbers, and it is not known which",
        where=locate(facts.module, store), which=f"`{value.type}`", because=facts.activity.why(value),
        fix="store the numbers through a pointer that is enzyme_dup, or enzyme_const_return if the result has no "
            "derivative")


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
