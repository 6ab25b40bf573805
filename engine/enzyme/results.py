"""What a differentiated function returns, as the notation sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.byte_kinds import CONFLICT
from irgrad.engine.differentiate.layout.leaves import has_float, has_pointer
from irgrad.engine.enzyme.structs import pointee
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Function, Instruction, Module
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import Unsupported

__all__ = ["Found", "Numbers", "Result", "floats_of", "numbers_given", "numbers_in", "ones", "result_of"]

Numbers = tuple[tuple[int, ty.FloatType], ...]
"""(offset in bytes, type)."""

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
        """What a call that is given a value of this kind has in place of it; nothing for memory."""
        if self.kind is None or self.memory:
            return ()
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
    active is in the result and it is not known as what; a cotangent of ones cannot be made then. `given`: the numbers
    in each parameter; None where something active is in it and it is not known as what."""

    numbers: Numbers = ()
    problem: Unsupported | None = None
    given: tuple[Numbers | None, ...] = ()


def numbers_in(facts: Facts, result: Result, slot: Argument) -> Found:
    """The numbers in a result; `slot`: the root's argument that it is stored through."""
    assert result.kind is not None
    stores = [i for fn in facts.pointers.functions for i in fn.instructions() if i.opcode == "store" and result.packed]
    problem = next((p for store in stores if (p := _unknown(facts, store, slot)) is not None), None)
    return Found(_numbers(facts, result.kind, slot), problem)


def numbers_given(facts: Facts, kind: Type, slot: Argument) -> Numbers | None:
    """The numbers in a parameter that is returned as a gradient; None where it is not known what an active integer
    carries. `slot`: the root's argument that it is loaded through."""
    loads = [] if not _may_carry(kind) else [
        i for fn in facts.pointers.functions for i in fn.instructions()
        if i.opcode == "load" and i.type.scalar.is_int and facts.activity.value(i)
        and facts.pointers.of(i.operands[0]) >> facts.pointers.object_of[slot].index & 1]  # fmt: skip
    known = all(facts.types.carriers.floats(load) for load in loads)
    return _numbers(facts, kind, slot) if known else None


def _numbers(facts: Facts, kind: Type, slot: Argument) -> Numbers:
    stated = dict(floats_of(kind))
    for at, found in facts.types.access(slot, ty.size_of(kind)) if _may_carry(kind) else ():
        if isinstance(found, ty.FloatType) and not _overlaps(at, found, stated):
            stated[at] = found
    return tuple(sorted(stated.items(), key=lambda entry: entry[0]))


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
        kind = pointee(module, function.args[0].attrs, "sret")
        return Result(kind, kind is not None and has_float(kind), True)
    ret = function.ftype.ret
    return Result(None, False, False) if ret is ty.VOID else Result(ret, has_float(ret), False)


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
