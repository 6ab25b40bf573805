"""Rules for whole batches: functions in C that are called once for all samples of a block.

    foreign("solve", Batched[Duplicated[Ptr[f64]], SoA], ..., primal="solve_all", reverse="solve_reverse_all")

A derivative is made for one sample, with the rule for one sample. The functions that it calls for the ruled one are
marked with what a batch may call in their place (`mark`). Where the derivative is widened over samples (`batch.py`),
a call of a marked function becomes one call of the function in C (`call_twin`), if the arguments that differ between
samples are those that the rule's types say; otherwise it is refused, and samples run one after the other.

    void f_all(A *x, const T *a, T *y, long samples)                                  primal, or:
    void f_augmented_all(A *x, const T *a, T *y, void **tape, long samples)
    void f_reverse_all(A *x, A *x_d, const T *a, T *a_d, const T *y_d, [void *tape,] long samples)
    void f_forward_all(A *x, A *x_d, const T *a, const T *a_d, T *y, T *y_d, long samples)

The samples of an element are side by side; numbers that differ, all results, adjoints and tangents are in memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.effects import attribute_text
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.transforms.fixed import c_prototype
from irgrad.engine.transforms.leaves import zero_of
from irgrad.rules.errors import RuleError
from irgrad.rules.types import Batched, Kind, SoA

if TYPE_CHECKING:
    from irgrad.engine.analyses.rulebook import Site
    from irgrad.engine.transforms.batch import _Widener
    from irgrad.engine.transforms.batch_uniform import Uniformity
    from irgrad.engine.transforms.custom import Shape
    from irgrad.engine.transforms.unit import Unit
    from irgrad.rules.dispatch import Table

__all__ = ["MARK", "Twin", "call_twin", "mark", "taped", "twins"]

MARK = "irgrad-batched"
_PLAIN = re.compile(r"[-\w.$]+")
_ATTRIBUTE = re.compile(rf'"{MARK}"="([^"]*)"')
_PLACE = re.compile(r"((?:local_)?unnamed_addr\s*)?")


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

    def mask(self, call: Instruction, facts: Uniformity) -> str:
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


# -- when a derivative is made -----------------------------------------------------------------------------------------


def taped(unit: Unit, site: Site) -> bool:
    """Whether a batch may call a function that makes a tape."""
    if unit.rules is None or unit.width != 1 or unit.mode != "reverse":
        return False
    return any("augmented" in options for options in _choices(unit.rules.tables(site.callee.name or ""), site).values())


def mark(
    unit: Unit, site: Site, shape: Shape, derived: Function, primal: Function | None = None, *, copies: bool = False
) -> bool:
    """Note on the function that derives a call, and on that which makes it, what a batch may call in their place;
    returns whether there is anything.

    copies: the tape of one sample holds more than the result: functions without a tape of their own do not fit
    """
    if unit.rules is None or unit.width != 1:
        return False
    sizes = _sizes(unit, site)
    chosen = _choices(unit.rules.tables(site.callee.name or ""), site) if sizes is not None else {}
    if copies:
        chosen = {mask: options for mask, options in chosen.items() if "augmented" in options}
    if not chosen or sizes is None:
        return False
    kinds = "".join("s" if s else "a" if a else "." for s, a in zip(shape.shadow, shape.adjoint, strict=True))
    facts = unit.rules.facts(site.callee)
    written = None if facts is None else facts.writes
    writes = "".join("w" if size and (written is None or i in written) else "." for i, size in enumerate(sizes))
    inner = "shadowed" if "augmented" in site.rule.options else "augmented"
    making = [] if primal is None else [("primal" if primal is site.callee else inner, primal)]
    for role, fn in ((unit.mode, derived), *making):
        names: dict[str, str] = {}
        for mask, options in chosen.items():
            tape = "augmented" in options and role != "forward"
            name = options.get(role if role in ("reverse", "forward") else "augmented" if tape else "primal")
            if name is not None:
                unit.rules.wanted |= {name} & unit.rules.symbols
                names[mask] = f"+{name}" if tape else name
        _attach(fn, Twin(role, kinds, writes, sizes, shape.active, names).text)
    return True


def _choices(tables: list[Table], site: Site) -> dict[str, dict[str, str]]:
    """The rule that a batch gets for each set of arguments that may differ between samples: its functions."""
    found: dict[str, dict[str, str]] = {}
    for table in tables:
        for rule in table.rules:
            if not rule.batched or len(rule.types) != len(site.types):
                continue
            mask = "".join("B" if issubclass(t, Batched) else "." for t in rule.types[2:])
            asked = (Batched[t, SoA] if m == "B" else t for t, m in zip(site.types[2:], mask, strict=True))
            best = table.resolve((*site.types[:2], *asked)) if mask not in found else None
            if best is not None and best.batched:
                found[mask] = {k: v for k, v in best.options.items() if isinstance(v, str)}
                bad = [name for name in found[mask].values() if not _PLAIN.fullmatch(name)]
                if bad:
                    raise RuleError(f"`{bad[0]}` is no name of a function in C", where=best.place)
    return found


def _sizes(unit: Unit, site: Site) -> tuple[int, ...] | None:
    """Bytes of an element behind each pointer, 0 for numbers; None where one is not known."""
    found: list[int] = []
    for arg, kind in zip(site.call.args, site.types[2:], strict=True):
        element = next(iter(kind.parameters), None)
        inner = next(iter(getattr(element, "parameters", ())), None)
        name = inner.__name__ if isinstance(inner, Kind) else ""
        size = int(name[1:]) // 8 if re.fullmatch(r"[fi](8|16|32|64)", name) else 0
        if arg.type.is_ptr and not size:
            return None
        found.append(size if arg.type.is_ptr else 0)
    return tuple(found)


def _attach(fn: Function, text: str) -> None:
    place = _PLACE.match(fn.tail)
    at = place.end() if place is not None else 0
    rest = _ATTRIBUTE.sub("", fn.tail[at:])
    fn.tail = f'{fn.tail[:at]}noinline "{MARK}"="{text}" {rest}'.strip()


def twins(module: Module) -> dict[str, Twin]:
    """The marked functions of a module."""
    found: dict[str, Twin] = {}
    for name, fn in module.functions.items():
        match = _ATTRIBUTE.search(attribute_text(module, fn.tail))
        if match is not None:
            found[name] = Twin.of(match[1])
    return found


# -- when it is widened ------------------------------------------------------------------------------------------------


def call_twin(widener: _Widener, instr: Instruction, twin: Twin) -> list[Value]:
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
        kind = ty.vector(lanes, type_)
        slot = Builder(widener.target.blocks[0], at=0).alloca(kind, align=64)
        b.store(value if value is not None else zero_of(kind), slot, ty.store_size(type_))
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
    parts: list[Value] = [b.load(ty.vector(lanes, type_), slot, ty.store_size(type_)) for type_, slot in results]
    if twin.role in ("augmented", "shadowed"):
        parts.append(b.load(ty.PTR, place) if place is not None else tape)
    return parts
