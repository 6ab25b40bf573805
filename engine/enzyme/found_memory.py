"""The memory that a program's variables lead to when it calls a derivative.

    static double *work;      /* allocated by whom? by main, by a constructor, by an earlier call of the function */

A kernel of its own allocates all that its variables keep, so that each block gets its shadow at the same time
(`differentiate/shadow/persistent_memory.py`). In a program other functions allocate too. There the function that is
differentiated begins by asking for the memory behind each pointer in such a variable:

    %base = call ptr @irgrad_found_memory(%address, ...)      ; an allocation, for the analyses, with its shadow
    store ptr %base + (where the address lies in it), ptr @work

Which pointers may lead to one piece of memory follows from what the function does with them, in a first analysis: those
that flow together, or are compared or subtracted, and those whose memory holds the same. Whether that is so is tested
when the program runs, and it stops where not. What holds no floats is left as it is, memory that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR, Layout
from irgrad.engine.analyses.memory.carried_over import carried_over
from irgrad.engine.analyses.memory.objects import FOUND, bits_of, found_group, has_pointer
from irgrad.engine.analyses.types.records import Pattern
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    ConstData,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts
    from irgrad.engine.differentiate.roots import Derived
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.differentiate.shared.rulebook import Rulebook

__all__ = ["Made", "with_memory"]

_MOST_POINTERS = 64  # of the variables of one function
_ONCE = 1 << 40  # the period of what does not repeat: only the start of an allocation is a multiple of it
_OTHER, _NOTHING = 0, -1
_TOGETHER = ("icmp", "sub")
_Place = tuple[str, int]
"""A variable, and where in it a pointer lies."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pointers of variables that may lead to the same memory; period: bytes of an element there, `_OTHER` where no
    floats lie in it, `_NOTHING` where nobody reads what the pointer is when the program calls."""

    number: int
    period: int


@dataclass(frozen=True, slots=True)
class Made:
    """A derivative in its module, with the rules that it was made by; variables: of the program, and defined there."""

    module: Module
    derived: Derived
    book: Rulebook | None
    variables: list[GlobalVariable]

    def leave_variables(self) -> None:
        """They are the program's, declarations here."""
        for var in self.variables:
            var.init = None


def with_memory(
    text: str, request: Request, defined: Mapping[str | None, bool], rules: Callable[[Module], Rulebook | None],
    derive: Callable[[Module, Request, Rulebook | None], Derived],
) -> Made:  # fmt: skip
    """The derivative of a root in `text`; where that is refused, of one that asks for the memory behind variables."""
    from irgrad.engine.ir.text.reader import read

    def once(places: Mapping[_Place, Group]) -> Made:
        module = read(text, [request.function])
        found_before(module)
        book = rules(module)
        variables = _own_variables(module, defined)
        if places:
            variables += find_memory(module, module.functions[request.function], places)
        return Made(module, derive(module, request, book), book, variables)

    try:
        return once({})
    except Unsupported:
        places = may_find(read(text, [request.function]), defined)
        if not places:
            raise
    return once(_groups(text, request, defined, rules, places))


def _groups(
    text: str, request: Request, defined: Mapping[str | None, bool], rules: Callable[[Module], Rulebook | None],
    places: list[_Place],
) -> dict[_Place, Group]:  # fmt: skip
    """Found in an analysis in which each pointer has memory of its own. Variables that are always written before they
    are read keep nothing from call to call."""
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.pipeline.derivatives import examined

    def analysed(alone: Mapping[_Place, Group]) -> Facts:
        module = read(text, [request.function])
        found_before(module)
        book = rules(module)
        _own_variables(module, defined)
        find_memory(module, module.functions[request.function], alone)
        return examined(module, request, book).facts

    facts = analysed({place: Group(0, _NOTHING) for place in places})
    mask = carried_over(facts.pointers, facts.types.ranges.places)
    kept = {facts.pointers.objects[bit].site for bit in bits_of(mask)}
    names = {var.name for var in kept if isinstance(var, GlobalVariable)}
    asked = [place for place in places if place[0] in names]
    groups = {place: Group(0, _NOTHING) for place in places if place[0] not in names}
    if asked:
        alone = {place: Group(number, _ONCE) for number, place in enumerate(asked)}
        groups |= groups_of(analysed(groups | alone), asked)
    return groups


def _own_variables(module: Module, defined: Mapping[str | None, bool]) -> list[GlobalVariable]:
    """Variables of numbers that the program defines: memory like any other, which gets a shadow."""
    found = [var for var in module.globals.values() if var.init is None and _numbers(var.value_type)
             and var.name in defined and not var.constant]  # fmt: skip
    for var in found:
        var.init = ConstZero(var.value_type) if _numbers(var.value_type, False) else ConstUndef(var.value_type)
    return found


def _numbers(type_: ty.Type, integers: bool = True) -> bool:
    """Floats, or also integers: what the analyses would conclude from the first contents of those does not hold."""
    match type_:
        case ty.FloatType():
            return True
        case ty.ArrayType(elem=elem) | ty.VectorType(elem=elem):
            return _numbers(elem, integers)
        case ty.StructType(fields=fields):
            return bool(fields) and all(_numbers(field, integers) for field in fields or ())
        case _:
            return integers and type_.is_int


def may_find(module: Module, defined: Mapping[str | None, bool]) -> list[_Place]:
    """The pointers in variables of a program. `defined`: the variables that it defines, and whether one of them holds
    addresses from the start."""
    places: list[_Place] = []
    for var in module.globals.values():
        if var.init is not None or var.constant or not has_pointer(var.value_type):
            continue
        found = _pointers(var.value_type) if defined.get(var.name) is False else None
        if found is not None:
            places += [(var.name or "", at) for at in found]
    return places if len(places) <= _MOST_POINTERS else []


def _pointers(type_: ty.Type, at: int = 0) -> list[int] | None:
    """Where pointers lie in a value of a type; None where other parts of it may be pointers too."""
    match type_:
        case ty.PtrType():
            return [at]
        case ty.ArrayType(count=count, elem=elem):
            if elem is ty.I8 and count >= 8:
                return None
            one = _pointers(elem)
            starts = range(at, at + min(count, 1 + _MOST_POINTERS) * ty.size_of(elem), ty.size_of(elem) or 1)
            return one and [start + place for start in starts for place in one]
        case ty.StructType(fields=fields):
            offsets = ty.field_offsets(type_) if fields else ()
            parts = [_pointers(field, at + place) for field, place in zip(fields or (), offsets, strict=False)]
            return None if None in parts else [place for part in parts for place in part or ()]
        case ty.VectorType():
            return None
        case _:
            return []


def find_memory(module: Module, root: Function, groups: Mapping[_Place, Group]) -> list[GlobalVariable]:
    """Let the root begin by asking for the memory behind some pointers of variables. Returns these."""
    variables: dict[str, GlobalVariable] = {}
    b = Builder(root.blocks[0], at=sum(instr.opcode == "alloca" for instr in root.blocks[0].instructions[:1]))
    ptr, i64 = ty.PTR, ty.I64
    begin = declare(module, "irgrad_found_begin", i64, ())
    size = declare(module, "irgrad_found_bytes", i64, (ptr, ptr))
    find = declare(module, FOUND, ptr, (ptr, i64, i64, i64, ptr))
    index = declare(module, "irgrad_found_index", i64, (ptr, ptr, i64, ptr))
    call: Value = ConstInt(i64, 0)
    if any(group.period != _NOTHING for group in groups.values()):
        call = b.call(begin, [])
    for (name, at), group in groups.items():
        var = module.globals[name]
        assert isinstance(var, GlobalVariable)
        variables[name] = var
        var.init = ConstZero(var.value_type)
        if group.period == _NOTHING:
            continue
        place = b.gep(ty.I8, var, at)
        address = b.load(ptr, place)
        said = _name(module, f"the pointer in `{name}`" + (f", {at} bytes from its start," if at else ""))
        length = b.call(size, [address, said]) if group.period else ConstInt(i64, 0)
        base = b.call(find, [address, length, call, ConstInt(i64, group.number), said])
        period = ConstInt(i64, group.period or 1)
        before = b.call(index, [address, base, period, said])
        b.store(base if group.period == _ONCE else b.gep(ty.I8, base, b.mul(before, period)), place)
    return list(variables.values())


def found_before(module: Module) -> None:
    """What a derivative in the module asks for is no memory of its own where that is differentiated again: the start
    of the allocation that the address lies in."""
    if FOUND not in module.functions:
        return
    ask = declare(module, "irgrad_found_before", ty.I64, (ty.PTR, ty.I64))
    for fn in module.functions.values():
        users = uses_of(fn.blocks)
        starts: dict[Value, Value] = {}
        for block in fn.blocks:
            for call in [instr for instr in block.instructions if instr.is_call and instr.callee_name == FOUND]:
                start = call.args[0]
                period = next(user.args[2] for user in users[call] if user.callee_name == "irgrad_found_index")
                if isinstance(period, ConstInt) and period.value != _ONCE:
                    b = Builder(block, block.instructions.index(call))
                    elements = b.mul(b.call(ask, [start, period]), ConstInt(ty.I64, -period.value))
                    start = b.gep(ty.I8, start, elements, flags=())
                block.instructions.remove(call)
                starts[call] = start
        if starts:
            replace_uses(fn, starts)


def _name(module: Module, words: str) -> GlobalVariable:
    data = words.encode() + b"\0"
    name = f"irgrad.found.{sum(key.startswith('irgrad.found.') for key in module.globals)}"
    type_ = ty.array(len(data), ty.I8)
    var = GlobalVariable(name, type_, ConstData(type_, data), True, "internal")
    module.globals[name] = var
    return var


def groups_of(facts: Facts, places: list[_Place]) -> dict[_Place, Group]:
    """Which pointers belong together, of an analysis with a group for each."""
    numbers = {}
    for call in facts.pointers.root.instructions():
        group = found_group(call) if call.is_call else None
        if group is not None:
            numbers[facts.pointers.object_of[call].index] = group
    union = {number: number for number in numbers.values()}

    def top(number: int) -> int:
        while union[number] != number:
            number = union[number]
        return number

    for masks in _together(facts, sum(1 << bit for bit in numbers)):
        first, *rest = (top(numbers[bit]) for bit in bits_of(masks))
        for other in rest:
            union[top(other)] = top(first)
    kinds: dict[int, set[Layout]] = {}
    periods: dict[int, int] = {}
    for bit, number in numbers.items():
        layout = facts.types.object_layout(facts.pointers.objects[bit])
        period, fields = (layout.period, layout.fields) if isinstance(layout, Pattern) else (_ONCE, layout)
        if any(kind not in (INT, PTR) and not (isinstance(kind, ty.Type) and kind.is_int) for _, kind in fields):
            kinds.setdefault(top(number), set()).add(fields)
            periods[top(number)] = max(periods.get(top(number), 1), period)
    same: dict[tuple[int, frozenset[Layout]], int] = {}
    groups = {}
    for number, place in enumerate(places):
        own = top(number) if number in union else -1
        key = periods.get(own, _OTHER), frozenset(kinds.get(own, ()))
        groups[place] = Group(same.setdefault(key, number), key[0])
    return groups


def _together(facts: Facts, found: int) -> Iterator[int]:
    """Memory that flows together, or whose addresses are computed with each other."""
    seen = set()
    for fn in facts.pointers.functions:
        for instr in fn.instructions():
            values: list[Value] = instr.operands if instr.opcode in _TOGETHER else [instr]
            mask = 0
            for value in values:
                own = facts.pointers.of(value) if isinstance(value, Instruction) else 0
                mask |= 0 if own & 1 else own & found  # an address that nobody knows may be anything
            if mask & (mask - 1) and mask not in seen:
                seen.add(mask)
                yield mask
