"""Functions that are called once for all samples in place of one that takes a single sample.

Where such a function comes from is the business of rules for batches (`custom_rules/rule_batches.py`): they mark the
function for one sample by an attribute, which says what may be called in its place, and for which arguments.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Protocol

from irgrad.engine.analyses.memory.call_effects import attribute_text
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.c_prototype import c_prototype
from irgrad.engine.ir.model import ConstInt, ConstUndef, ConstZero, Function, Instruction, Module, Value
from irgrad.rules.errors import RuleError

__all__ = ["ATTRIBUTE", "MARK", "Twin", "call_twin", "twins"]

MARK = "irgrad-batched"
ATTRIBUTE = re.compile(rf'"{MARK}"="([^"]*)"')


class Varying(Protocol):
    """What differs between samples (see `Uniformity`)."""

    @property
    def varying(self) -> Container[Value]: ...
    def scaled(self, pointer: Value) -> bool: ...


class Widening(Protocol):
    """A function that is being widened over samples (see `widening.py`)."""

    b: Builder
    lanes: int
    target: Function
    module: Module

    @property
    def facts(self) -> Varying: ...
    def one(self, value: Value) -> Value: ...
    def wide(self, value: Value) -> Value: ...


@dataclass(frozen=True, slots=True)
class Twin:
    """What a batch may call in place of a function.

    role:    which function of a rule is replaced: "primal", "augmented" (the same, and a tape), "shadowed" (that, with
             shadows among its arguments), "reverse" or "forward"
    kinds:   of each argument of the ruled function: "s" a pointer with a shadow, "a" a number with an adjoint or
             tangent, "." neither
    writes:  "w" for pointers that the function writes through
    sizes:   bytes of an element, 0 for numbers
    active:  whether the result has a cotangent or tangent
    choices: which arguments differ between samples ("B", else ".") -> the function in C, with a "+" in front where it
             has a tape
    """

    role: str
    kinds: str
    writes: str
    sizes: tuple[int, ...]
    active: bool
    choices: dict[str, str]

    @property
    def text(self) -> str:
        """For an attribute of the function."""
        chosen = ",".join(f"{mask}={name}" for mask, name in self.choices.items())
        sizes = ",".join(map(str, self.sizes))
        return "|".join((self.role, self.kinds, self.writes, sizes, str(int(self.active)), chosen))

    @staticmethod
    def of(text: str) -> Twin:
        """What `text` says."""
        role, kinds, writes, sizes, active, chosen = text.split("|")
        numbers = tuple(int(n) for n in sizes.split(",") if n)
        return Twin(role, kinds, writes, numbers, active == "1", dict(c.split("=", 1) for c in chosen.split(",")))

    def mask(self, call: Instruction, facts: Varying) -> str:
        """Which arguments of the ruled function differ between samples."""
        own = (arg for arg, part in self.parts(call) if part == "own")
        return "".join("B" if arg in facts.varying or (arg.type.is_ptr and facts.scaled(arg)) else "." for arg in own)

    def memory(self, call: Instruction) -> list[tuple[Value, int, bool]]:
        """Each pointer, the bytes of an element behind it, and whether that may be written."""
        found, index = [], -1
        for arg, part in self.parts(call):
            index += part == "own"
            if arg.type.is_ptr and part in ("own", "shadow"):
                found.append((arg, self.sizes[index], part == "shadow" or self.writes[index] == "w"))
        return found

    def parts(self, call: Instruction) -> list[tuple[Value, str]]:
        """Each argument of the call: "own", "shadow", "tangent", "cotangent", "tape" or "arena"."""
        given = iter(call.args)
        found: list[tuple[Value, str]] = []
        for kind in self.kinds:
            found.append((next(given), "own"))
            if kind == "s" and self.role in ("reverse", "forward", "shadowed"):
                found.append((next(given), "shadow"))
            elif kind == "a" and self.role == "forward":
                found.append((next(given), "tangent"))
        if self.role == "reverse":
            found += [(next(given), "cotangent")] if self.active else []
        if self.role in ("reverse", "augmented", "shadowed"):
            found.append((next(given), "tape" if self.role == "reverse" else "arena"))
        return found


def twins(module: Module) -> dict[str, Twin]:
    """The marked functions of a module."""
    found: dict[str, Twin] = {}
    for name, fn in module.functions.items():
        match = ATTRIBUTE.search(attribute_text(module, fn.tail))
        if match is not None:
            found[name] = Twin.of(match[1])
    return found


def call_twin(widener: Widening, instr: Instruction, twin: Twin) -> list[Value]:
    """One call for all samples in place of the call of a marked function; what it returns, part by part."""
    b, lanes = widener.b, widener.lanes
    args: list[Value] = []
    mask, index = twin.mask(instr, widener.facts), -1
    results: list[tuple[ty.Type, Value]] = []
    name = twin.choices[mask]
    has_tape, name = name.startswith("+"), name.removeprefix("+")
    tape: Value = ConstZero(ty.PTR)

    def memory(type_: ty.Type, value: Value | None) -> Value:
        """The values of all samples, as given or zeros."""
        slot = Builder(widener.target.blocks[0], at=0).alloca(ty.array(lanes, type_), align=64)
        _store(b, zero(ty.vector(lanes, type_)) if value is None else value, slot)
        return slot

    def result(type_: ty.Type) -> None:
        args.append(memory(type_, None))
        results.append((type_, args[-1]))

    for arg, part in twin.parts(instr):
        if part == "tape":
            tape = widener.one(arg)
        if part in ("tape", "arena") or (part == "shadow" and twin.role == "shadowed"):
            continue
        index += part == "own"
        wide = part in ("tangent", "cotangent") or (part == "own" and mask[index] == "B" and not arg.type.is_ptr)
        args.append(memory(arg.type, widener.wide(arg)) if wide else widener.one(arg))
        if part == "own" and twin.kinds[index] == "a" and twin.role == "reverse":
            result(arg.type)
    if twin.role != "reverse" and instr.type is not ty.VOID:
        fields = instr.type.fields if isinstance(instr.type, ty.StructType) else (instr.type,)
        for type_ in fields or ():
            if not type_.is_ptr:
                result(type_)
    place: Value | None = None
    if has_tape and twin.role == "reverse":
        args.append(tape)
    elif has_tape:
        place = Builder(widener.target.blocks[0], at=0).alloca(ty.PTR)
        b.store(ConstZero(ty.PTR), place)
        args.append(place)
    args.append(ConstInt(ty.I64, lanes))
    ftype = ty.function(ty.VOID, tuple(a.type for a in args))
    found = widener.module.functions.get(name)
    if found is None:
        found = widener.module.functions[name] = Function(name, ftype)
    elif found.ftype.ret is not ty.VOID or found.ftype.params != ftype.params:
        raise RuleError(f"`{name}` has another prototype", which=c_prototype(name, found.ftype, [""] * len(args)),
                        because="a batch calls it with the values of all samples in memory",
                        fix=c_prototype(name, ftype, [""] * len(args)))  # fmt: skip
    b.call(found, args, ftype)
    parts = [_load(b, ty.vector(lanes, type_), slot) for type_, slot in results]
    if twin.role in ("augmented", "shadowed"):
        parts.append(b.load(ty.PTR, place) if place is not None else tape)
    return parts


def _padded(type_: ty.Type) -> bool:
    """Elements of an array (long doubles, bools) that are farther apart than those of a vector in memory."""
    return isinstance(type_, ty.IntType | ty.FloatType) and type_.bits != 8 * ty.size_of(type_)


def _store(b: Builder, value: Value, place: Value) -> None:
    """A vector as an array of C."""
    assert isinstance(value.type, ty.VectorType)
    if not _padded(value.type.elem):
        b.store(value, place, ty.store_size(value.type.elem))
        return
    for lane in range(value.type.count):
        b.store(b.extractelement(value, lane), b.gep(value.type.elem, place, lane))


def _load(b: Builder, type_: ty.VectorType, place: Value) -> Value:
    """A vector from an array of C."""
    if not _padded(type_.elem):
        return b.load(type_, place, ty.store_size(type_.elem))
    value: Value = ConstUndef(type_, poison=True)
    for lane in range(type_.count):
        value = b.insertelement(value, b.load(type_.elem, b.gep(type_.elem, place, lane)), lane)
    return value
