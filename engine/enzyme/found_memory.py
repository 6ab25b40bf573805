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

A list or a tree has no last pointer to ask for. Its variable (a stack of contexts, say, that is empty outside of calls)
has to be null when the program calls, which is tested likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR, Layout
from irgrad.engine.analyses.memory.carried_over import carried_over
from irgrad.engine.analyses.memory.objects import FOUND, TABLE, bits_of, found_group, has_pointer
from irgrad.engine.analyses.memory.strided_sets import Offsets, touches
from irgrad.engine.analyses.types.records import Pattern
from irgrad.engine.enzyme.told_variables import Defined, libraries_called
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
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
from irgrad.rules.errors import MissingRuleError, Unsupported

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts
    from irgrad.engine.differentiate.roots import Derived
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.differentiate.shared.rulebook import Rulebook

__all__ = ["Made", "with_memory"]

_MOST_POINTERS = 64  # of the variables of one function
_ONCE = 1 << 40  # the period of what does not repeat: only the start of an allocation is a multiple of it
_OTHER, _NOTHING, _NULL = 0, -1, -2
_DEEPEST = 4  # analyses, each of which follows pointers one step further
_TOGETHER = ("icmp", "sub")
_Place = tuple[Any, ...]
"""A variable, where in it a pointer lies, and where in each element of the memory behind that another one lies, ..."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pointers of variables that may lead to the same memory; period: bytes of an element there, `_OTHER` where no
    floats lie in it, `_NOTHING` where nobody reads what the pointer is when the program calls, `_NULL` where it has to
    be null then."""

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
    groups, endless = _groups(text, request, defined, rules, places)
    try:
        return once(groups)
    except Unsupported as error:
        # (functions that nobody knows are looked for in the program's tables first, see `lower.py`)
        if not endless or isinstance(error, MissingRuleError):
            raise
    empty = {place: Group(0, _NULL) for place in endless}
    return once({place: group for place, group in groups.items() if place[:2] not in endless} | empty)


def _groups(
    text: str, request: Request, defined: Mapping[str | None, bool], rules: Callable[[Module], Rulebook | None],
    places: list[_Place],
) -> tuple[dict[_Place, Group], set[_Place]]:  # fmt: skip
    """Found in an analysis in which each pointer has memory of its own; and the pointers of variables behind which
    there is always one more. Variables that are always written before they are read keep nothing from call to call."""
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
    mask = carried_over(facts.pointers, facts.types.ranges.places, overlaps=False)
    asked = [place for place in places if _reads(facts, place, mask)]
    groups = {place: Group(0, _NOTHING) for place in places if place not in asked}
    found: dict[_Place, Group] = {}
    fresh: list[_Place] = []
    for _ in range(_DEEPEST if asked else 0):
        alone = {place: Group(number, found[place].period if place in found else _ONCE)
                 for number, place in enumerate(asked)}  # fmt: skip
        found, inner = groups_of(analysed(groups | alone), asked)
        fresh = [place for place in inner if place not in found]
        if not fresh or len(asked) + len(fresh) > _MOST_POINTERS:
            break
        asked += fresh
    return groups | found, {place[:2] for place in fresh}


def _reads(facts: Facts, place: _Place, carried: int) -> bool:
    """Whether anything reads the pointer that lies in a variable; what other pointers lead to is no variable."""
    name, at = place
    var = facts.pointers.object_of.get(facts.pointers.module.globals[name])
    if var is None or not carried >> var.index & 1:
        return False
    for fn in facts.pointers.functions:
        for instr in fn.instructions():
            if instr.is_call and facts.pointers.effect(instr) is not None:
                if any(facts.pointers.of(arg) >> var.index & 1 for arg in instr.args):
                    return True
            elif instr.traits.address >= 0 and instr.opcode != "store":
                where = facts.types.ranges.places(instr.operands[instr.traits.address]).get(var.index)
                if where is not None and touches(where, Offsets(at), -7, ty.store_size(instr.type)):
                    return True
    return False


def _own_variables(module: Module, defined: Mapping[str | None, bool]) -> list[GlobalVariable]:
    """Variables of numbers that the program defines: memory like any other, which gets a shadow."""
    found = [var for var in module.globals.values() if var.init is None and _numbers(var.value_type)
             and var.name in defined and not var.constant]  # fmt: skip
    called = found and isinstance(defined, Defined) and libraries_called(module)
    for var in found:
        var.init = ConstZero(var.value_type) if _numbers(var.value_type, False) else ConstUndef(var.value_type)
        if isinstance(defined, Defined):
            var.told = var.name in defined.told or bool(called and var.name not in defined.own)
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
    prologue = _Prologue(module, root, groups)
    variables: dict[str, GlobalVariable] = {}
    for place in groups:
        name, at, *behind = place
        var = module.globals[name]
        assert isinstance(var, GlobalVariable)
        variables[name] = var
        var.init = ConstZero(var.value_type)
        if groups[place].period == _NULL:
            prologue.test(place, prologue.b.gep(ty.I8, var, at))
        elif groups[place].period != _NOTHING and not behind:
            prologue.ask(place, prologue.b.gep(ty.I8, var, at))
    prologue.end()
    return list(variables.values())


class _Prologue:
    """What the root begins with."""

    def __init__(self, module: Module, root: Function, groups: Mapping[_Place, Group]) -> None:
        ptr, i64 = ty.PTR, ty.I64
        self.module, self.root, self.groups = module, root, groups
        self.b = Builder(Block("found"))
        self.blocks = [self.b.block]
        self.size = declare(module, "irgrad_found_bytes", i64, (ptr, ptr))
        self.find = [declare(module, name, ptr, (ptr, i64, i64, i64, ptr)) for name in (FOUND, TABLE)]
        self.index = declare(module, "irgrad_found_index", i64, (ptr, ptr, i64, ptr))
        self.call: Value = ConstInt(i64, 0)
        if any(group.period not in (_NOTHING, _NULL) for group in groups.values()):
            self.call = self.b.call(declare(module, "irgrad_found_begin", i64, ()), [])

    def test(self, place: _Place, slot: Value) -> None:
        """Stop the program where the pointer in `slot` is not null."""
        test = declare(self.module, "irgrad_found_nothing", ty.VOID, (ty.PTR, ty.PTR))
        self.b.call(test, [self.b.load(ty.PTR, slot), self._name(place)])

    def ask(self, place: _Place, slot: Value) -> None:
        """Ask for the memory behind the pointer in `slot`, and behind the pointers there."""
        group, inner = self.groups[place], [path for path in self.groups if path[:-1] == place]
        address = self.b.load(ty.PTR, slot)
        said = self._name(place) if len(place) == 2 else ConstZero(ty.PTR)
        length = self.b.call(self.size, [address, said]) if group.period else ConstInt(ty.I64, 0)
        number = ConstInt(ty.I64, group.number)
        base = self.b.call(self.find[bool(inner)], [address, length, self.call, number, said])
        period = ConstInt(ty.I64, group.period or 1)
        before = self.b.call(self.index, [address, base, period, said])
        once = group.period == _ONCE
        self.b.store(base if once else self.b.gep(ty.I8, base, self.b.mul(before, period)), slot)
        if inner:
            self._behind(inner, base, self._count(base, length, group.period))

    def _count(self, base: Value, length: Value, period: int) -> Value:
        """How many elements a block has; one where nothing repeats."""
        if period != _ONCE:
            return self.b.binary("udiv", length, ConstInt(ty.I64, period))
        some = self.b.icmp("ne", length, ConstInt(ty.I64, 0))
        return self.b.cast("zext", some, ty.I64)

    def _behind(self, inner: list[_Place], base: Value, count: Value) -> None:
        """A loop over the elements of a block."""
        period = ConstInt(ty.I64, self.groups[inner[0][:-1]].period)
        before = self.b.block
        head, body, end = (Block(f"found.{len(self.blocks) + i}") for i in range(3))
        self.blocks += [head, body, end]
        self.b.br(head)
        i = Builder(head).phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
        at_head = Builder(head)
        at_head.cond_br(at_head.icmp("ult", i, count), body, end)
        self.b = Builder(body)
        element = base if period.value == _ONCE else self.b.gep(ty.I8, base, self.b.mul(i, period))
        for path in inner:
            self.ask(path, self.b.gep(ty.I8, element, path[-1]))
        more = self.b.add(i, ConstInt(ty.I64, 1), ("nuw",))
        i.operands.append(more)
        i.blocks.append(self.b.block)
        self.b.br(head)
        self.b = Builder(end)

    def end(self) -> None:
        """Go on with what the root did before."""
        old = self.root.blocks[0]
        if len(self.blocks) == 1:
            place = Builder(old, at=0)
            for instr in self.blocks[0].instructions:
                place.insert(instr)
            return
        for instr in [instr for instr in old.instructions if instr.opcode == "alloca"]:
            old.instructions.remove(instr)
            self.blocks[0].instructions.insert(0, instr)
            instr.block = self.blocks[0]
        self.b.br(old)
        for block in self.blocks:
            block.function = self.root
        self.root.blocks[:0] = self.blocks

    def _name(self, place: _Place) -> GlobalVariable:
        words = f"the pointer in `{place[0]}`" + (f", {place[1]} bytes from its start," if place[1] else "")
        data = words.encode() + b"\0"
        name = f"irgrad.found.{sum(key.startswith('irgrad.found.') for key in self.module.globals)}"
        type_ = ty.array(len(data), ty.I8)
        var = GlobalVariable(name, type_, ConstData(type_, data), True, "internal")
        self.module.globals[name] = var
        return var


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
            calls = [instr for instr in block.instructions if instr.is_call]
            for call in [instr for instr in calls if instr.callee_name in (FOUND, TABLE)]:
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


def groups_of(facts: Facts, places: list[_Place]) -> tuple[dict[_Place, Group], list[_Place]]:
    """Which pointers belong together, of an analysis with a group for each; the pointers in the memory behind."""
    numbers = {}
    for call in facts.pointers.root.instructions():
        group = found_group(call) if call.is_call else None
        if group is not None:
            numbers[facts.pointers.object_of[call].index] = group
    union = {number: number for number in range(len(places))}

    def top(number: int) -> int:
        while union[number] != number:
            number = union[number]
        return number

    for masks in _together(facts, sum(1 << bit for bit in numbers)):
        first, *rest = (top(numbers[bit]) for bit in bits_of(masks))
        for other in rest:
            union[top(other)] = top(first)
    behind: dict[tuple[int, int], int] = {}
    for number, place in sorted(enumerate(places), key=lambda entry: len(entry[1])):
        if len(place) > 2:  # one place in the memory that several pointers lead to
            above = top(places.index(place[:-1])), place[-1]
            union[top(number)] = top(behind.setdefault(above, number))
    layouts: list[set[tuple[int, Layout]]] = [set() for _ in places]
    for bit, number in numbers.items():
        obj = facts.pointers.objects[bit]
        layout = facts.types.object_layout(obj)
        period, fields = (layout.period, layout.fields) if isinstance(layout, Pattern) else (_ONCE, layout)
        if any(kind is PTR for _, kind in fields) and facts.types.small_record(obj)[0]:
            period, fields = _ONCE, facts.types.small_record(obj)[1]  # pointers to different things
        if any(kind is not INT and not (isinstance(kind, ty.Type) and kind.is_int) for _, kind in fields):
            layouts[number].add((period, fields))
    numbered = {place: number for number, place in enumerate(places)}

    def held(place: _Place) -> frozenset[tuple[int, Layout]]:
        mine = top(numbered[place])
        return frozenset(row for other in union if top(other) == mine for row in layouts[other])

    def shape(place: _Place) -> Any:
        """What the memory holds, and what pointers in it lead to."""
        return held(place), tuple((path[-1], shape(path)) for path in places if path[:-1] == place)

    groups: dict[_Place, Group] = {}
    inner: list[_Place] = []
    same: dict[Any, int] = {}
    for depth in sorted(set(map(len, places))):
        level = [(number, place) for number, place in enumerate(places) if len(place) == depth]
        for number, place in level if depth > 2 else ():  # what one place in one memory leads to
            above = groups[place[:-1]].number, place[-1]
            union[top(number)] = top(same.setdefault(above, number))
        for number, place in level:
            own = held(place)
            period = max((period for period, _ in own if period != _ONCE), default=_ONCE) if own else _OTHER
            groups[place] = Group(same.setdefault(shape(place), number), period)
            inner += [(*place, at) for at in sorted({at for _, fields in own for at, kind in fields if kind is PTR})]
    return groups, inner


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
