"""Structs of pointers and counts that a function is given by address (a vector, a matrix, a mesh), read before a call.

What is behind such a pointer is memory that was loaded: nothing is known of two of them. A function that reads members
at fixed places and never writes these is written once more here, with the members as arguments of its own, so that the
memory behind them is compared like that of any other argument (see `overlaps.py`); members may be structs in turn.
Numbers that a function is given by address (Fortran's arguments) are members too.

A member is read in front of the call only where the function reads it, with the same conditions, or where others are
read on both sides of it. That they are what the function reads later follows when the call is made: no memory that the
function touches overlaps with them, which is compared with all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.differentiate.layout.lanes import constant_offset
from irgrad.engine.enzyme.calls import DerivativeCall, Parameter
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.enzyme.float_memory import formals_of
from irgrad.engine.enzyme.reach import Reach
from irgrad.engine.enzyme.thunks import active
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import ACCESSES, COUNTED, COUNTS
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.preheader import numbers_leave
from irgrad.rules.effects import facts

__all__ = ["Members", "arguments_of", "with_members"]

_DEEP = 3  # structs behind structs
_MOST = 40  # members
_EXTREMES = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.")
_Uses = Mapping[Value, list[Instruction]]


@dataclass(frozen=True, slots=True)
class Members:
    """A root that takes its members as arguments: a call of it, its text and its name; by argument, the bytes of the
    members; the text of what calls the second function, or the first where members cannot be read beforehand."""

    call: DerivativeCall
    text: str
    root: str
    pointers: tuple[int, ...]
    read: dict[int, tuple[int, int]]
    chooser: str


@dataclass(slots=True, eq=False)
class _Member:
    """What is read at a place behind an argument, or behind another member."""

    owner: int
    offset: int
    type: ty.Type
    number: int  # as an argument
    shadowed: bool = False
    begin: _Member | None = None  # for a pointer that is only compared: what it is given as a distance from
    loads: list[Instruction] = field(default_factory=list)

    @property
    def given(self) -> ty.Type:
        """What the root is given."""
        return self.type if self.begin is None else ty.I64


def with_members(
    call: DerivativeCall, module: Module, root: str, pointers: Sequence[int], given: str, names: tuple[str, str, str]
) -> Members | None:
    """The root of a call with its members as arguments; None where it has none, or where they could not be read.

    module: the root in one function, which is changed; given: what is said of memory apart; names: of what chooses, of
    the first function and of the second one
    """
    fn = module.functions[root]
    uses = uses_of(fn.blocks)
    shadowed = [n for n, kind in enumerate(active(call)) if kind == "dup"]
    members = _members(fn, uses, sorted({*pointers, *call.apart}), shadowed, len(call.parameters))
    if not members or len(members) > _MOST:
        return None
    numbers = frozenset(n for n, formal in enumerate(formals_of(call)) if not formal.type.is_ptr)
    try:
        chosen = _Chooser(call, fn, members, numbers).function(*names)
    except UnknownError:
        return None
    _rewrite(fn, members, len(call.parameters))
    wide = (*pointers, *(m.number for m in members if m.given.is_ptr))
    read = _bytes(members)
    if not _kept(fn, read):
        return None
    for n in wide:
        fn.args[n].attrs = given
    return Members(_widened(call, members), _text(module, fn, f"{root}.members"), f"{root}.members", wide, read, chosen)


def _members(fn: Function, uses: _Uses, pointers: Sequence[int], shadowed: Sequence[int], first: int) -> list[_Member]:
    """The members of arguments, each behind those that it is reached through."""
    found: list[_Member] = []
    work: list[tuple[int, list[Value], bool, int]] = [(n, [fn.args[n]], n in shadowed, 0) for n in pointers]
    for owner, bases, dup, depth in work:
        here: dict[tuple[int, ty.Type], _Member] = {}
        table = False
        for load, offset in _reads(bases, uses):
            if offset is None:
                table = table or load.type.is_ptr
            elif load.type.is_ptr or (isinstance(load.type, ty.IntType) and _counts(load, uses)):
                key = (offset, load.type)
                here.setdefault(key, _Member(owner, offset, load.type, 0)).loads.append(load)
        if table or depth > _DEEP:
            continue
        for member in here.values():
            member.number = first + len(found)
            found.append(member)
            if member.type.is_ptr and _compared(member.loads, uses):
                member.begin = _begin(member, here.values(), uses)
            if member.given.is_ptr:
                member.shadowed = dup and not _counted(member.loads, uses)
                work.append((member.number, list(member.loads), member.shadowed, depth + 1))
    return found


def _compared(pointers: Sequence[Instruction], uses: _Uses) -> bool:
    """Whether nothing is read or written behind a pointer: where it ends is asked only."""
    return all(user.opcode in ("icmp", "ptrtoint") for pointer in pointers for user in uses.get(pointer, ()))


def _begin(end: _Member, members: Iterable[_Member], uses: _Uses) -> _Member | None:
    """The pointer beside it, before it if there is one, to which something is behind."""
    near = [m for m in members if m.type.is_ptr and m is not end and not _compared(m.loads, uses)]
    return min(near, key=lambda m: (m.offset > end.offset, abs(m.offset - end.offset)), default=None)


def _reads(bases: Sequence[Value], uses: _Uses) -> Iterator[tuple[Instruction, int | None]]:
    """The loads behind a pointer, and how many bytes behind it; None where that is not fixed."""
    work: list[tuple[Value, int | None]] = [(base, 0) for base in bases]
    while work:
        address, offset = work.pop()
        for user in uses.get(address, ()):
            if user.opcode == "load":
                yield user, offset if not user.volatile and not user.ordering else None
            elif user.opcode == "getelementptr" and user.operands[0] is address:
                assert user.elem is not None
                indices = [i for i in user.operands[1:] if isinstance(i, ConstInt)]
                step = constant_offset(user.elem, indices) if len(indices) == len(user.operands) - 1 else None
                work.append((user, None if step is None or offset is None else offset + step))


def _counts(load: Instruction, uses: _Uses) -> bool:
    """Whether an integer counts: it ends in subscripts, conditions and conversions, and is not the bits of a float."""
    work: list[Value] = [load]
    for value in work:
        for user in uses.get(value, ()):
            if user.opcode in COUNTS or (user.callee_name or "").startswith(_EXTREMES):
                work += [user] if user not in work else []
            elif user.opcode not in COUNTED and not _takes_bytes(user, value):
                return False
    return True


def _takes_bytes(user: Instruction, value: Value) -> bool:
    """Whether a call takes a number as so many bytes only."""
    known = facts(user.callee_name or "") if user.is_call else None
    if known is None:
        return False
    given = [n for n, arg in enumerate(user.args) if arg is value]
    return known.allocates or known.frees is not None or (known.size >= 0 and given == [known.size])


def _counted(pointers: Sequence[Instruction], uses: _Uses) -> bool:
    """Whether nothing but integers that count is read behind a pointer, and nothing written: it needs no shadow."""
    work: list[Value] = list(pointers)
    for address in work:
        for user in uses.get(address, ()):
            if user.opcode == "getelementptr" and user.operands[0] is address:
                work.append(user)
            elif user.opcode == "load":
                if not isinstance(user.type, ty.IntType) or not _counts(user, uses):
                    return False
            elif user.opcode not in ("icmp", "ptrtoint"):
                return False
    return True


class _Chooser:
    """Builds the function that reads the members and calls the root which takes them."""

    def __init__(self, call: DerivativeCall, fn: Function, members: list[_Member], numbers: frozenset[int]) -> None:
        self.call = call
        self.members = members
        self.numbers = numbers
        self.kinds = [kind == "dup" for kind in active(call)]
        self.reach = Reach(fn, Induction(fn), get(Loops, fn))
        self.values: dict[int, Value] = {}
        self.shadows: dict[int, Value] = {}
        self.read: dict[int, tuple[int, int]] = {}

    def function(self, name: str, first: str, second: str) -> str:
        """Its text, with that of the first function as one which takes the members. Raises UnknownError."""
        from irgrad.engine.ir.printer import to_text

        slots = sum(1 + kind for kind in self.kinds)
        made = Function(name, ty.function(ty.VOID, (ty.PTR,) * slots))
        block, no = Block("entry"), Block("no")
        made.blocks, b = [block], Builder(block)
        given = iter(made.args)
        for n, kind in enumerate(self.kinds):
            place = n if n < len(self.call.parameters) else n + len(self.members)
            self.values[place] = next(given)
            if kind:
                self.shadows[place] = next(given)
        own = [self.values[n if n < len(self.call.parameters) else n + len(self.members)]
               for n in range(len(self.kinds))]  # fmt: skip
        early = EarlyValues(b, own, self.numbers)
        rooms = {m.number: b.alloca(m.given) for m in self.members if not m.given.is_ptr}
        waiting = list(self.members)
        while waiting:
            member, runs = self._next(waiting, early)
            waiting.remove(member)
            if runs is not None:
                b = self._go_on(made, b, runs, no)
                early.go_on(b)
            self._load(b, member, rooms, early)
        ends = Function(second, ty.function(ty.VOID, (ty.PTR,) * len(self._all())))
        b.call(ends, self._all())
        b.ret()
        plain = Function(first, made.ftype)
        Builder(no).call(plain, list(made.args))
        Builder(no).ret()
        made.blocks.append(no)
        module = Module()
        whole = Function(f"{second}.whole", ends.ftype)
        for callee in [i.callee for i in made.instructions() if i.is_call]:
            if isinstance(callee, Function):
                module.functions[callee.name or ""] = callee
        module.functions |= {name: made, second: ends, first: plain, whole.name or "": whole}
        self._wrap(whole, plain)
        return to_text(module)

    def _all(self) -> list[Value]:
        """All values, each with its shadow, in the order of the root that takes the members."""
        order = sorted(self.values)
        return [v for n in order for v in (self.values[n], *([self.shadows[n]] if n in self.shadows else []))]

    def _wrap(self, whole: Function, plain: Function) -> None:
        """A function that takes the members too, and leaves them out."""
        own = {place for place in self.values if place not in {m.number for m in self.members}}
        kept = [arg for arg, place in zip(whole.args, self._places(), strict=True) if place in own]
        whole.blocks = [Block("entry")]
        b = Builder(whole.blocks[0])
        b.call(plain, kept)
        b.ret()

    def _places(self) -> list[int]:
        return [n for n in sorted(self.values) for _ in range(1 + (n in self.shadows))]

    def _go_on(self, made: Function, b: Builder, runs: Value, no: Block) -> Builder:
        then = Block(f"then{len(made.blocks)}")
        b.cond_br(b.insert(Instruction("freeze", ty.I1, [runs])), then, no)
        made.blocks.append(then)
        return Builder(then)

    def _next(self, waiting: Sequence[_Member], early: EarlyValues) -> tuple[_Member, Value | None]:
        """A member that may be read now, and the condition for it. Raises UnknownError."""
        for member in waiting:
            if member.owner not in self.values or (member.begin and member.begin.number not in self.values):
                continue
            low, high = self.read.get(member.owner, (0, 0))
            if low <= member.offset and member.offset + ty.store_size(member.type) <= high:
                return member, None
            for load in member.loads:
                loops = self.reach.around(load.block)
                assert load.block is not None
                try:
                    return member, self.reach.runs(early, load.block, loops, dict.fromkeys(loops, False))
                except UnknownError:
                    continue
        raise UnknownError

    def _load(self, b: Builder, member: _Member, rooms: Mapping[int, Value], early: EarlyValues) -> None:
        low, high = member.offset, member.offset + ty.store_size(member.type)
        before = self.read.get(member.owner, (low, high))
        self.read[member.owner] = (min(before[0], low), max(before[1], high))
        align = min((load.align or 1) for load in member.loads)
        value = b.load(member.type, b.gep(ty.I8, self.values[member.owner], member.offset), align)
        early.learn(member.loads, value)
        if member.begin is not None:
            begin = b.cast("ptrtoint", self.values[member.begin.number], ty.I64)
            value = b.sub(b.cast("ptrtoint", value, ty.I64), begin, ())
        if member.given.is_ptr:
            self.values[member.number] = value
            if member.shadowed:
                self.shadows[member.number] = b.load(ty.PTR, b.gep(ty.I8, self.shadows[member.owner], member.offset),
                                                     align)  # fmt: skip
        else:
            b.store(value, rooms[member.number])
            self.values[member.number] = rooms[member.number]


def _bytes(members: Sequence[_Member]) -> dict[int, tuple[int, int]]:
    """From the first byte of a struct that is read to the last one."""
    found: dict[int, tuple[int, int]] = {}
    for m in members:
        low, high = found.get(m.owner, (m.offset, m.offset))
        found[m.owner] = (min(low, m.offset), max(high, m.offset + ty.store_size(m.type)))
    return found


def _rewrite(fn: Function, members: Sequence[_Member], first: int) -> None:
    """Give a function its members as arguments; what is computed of them is known before its loops."""
    new = [Argument(ty.PTR, None, m.number, "noalias") for m in members]
    fn.args = [*fn.args[:first], *new, *fn.args[first:]]
    for n, arg in enumerate(fn.args):
        arg.index, arg.function, arg.name = n, fn, f"a{n}"
    fn.ftype = ty.function(ty.VOID, (ty.PTR,) * len(fn.args))
    replaced: dict[Value, Value] = {}
    at = Builder(fn.entry, at=0)
    for member, arg in zip(members, new, strict=True):
        value: Value = arg if member.given.is_ptr else at.load(member.given, arg)
        if member.begin is not None:
            value = at.gep(ty.I8, fn.args[member.begin.number], value, flags=())
        replaced.update(dict.fromkeys(member.loads, value))
    replace_uses(fn, replaced)
    for block in fn.blocks:
        block.instructions = [instr for instr in block.instructions if instr not in replaced]
    fn.analyses = None
    loops = get(Loops, fn)
    for loop in reversed(loops.all):
        if loop.preheader is not None:
            numbers_leave(loop, loops)
    fn.analyses = None


def _kept(fn: Function, read: Mapping[int, tuple[int, int]]) -> bool:
    """Whether nothing is written to the members through the pointer to their struct."""
    induction = Induction(fn)
    for instr in fn.instructions():
        if instr.opcode == "store":
            base, form = induction.address(instr.operands[1])
            for arg in arguments_of(base) & read.keys():
                low, high = read[arg]
                at = signed(form.const)
                if form.terms or base is not fn.args[arg]:
                    return False
                if at < high and at + ty.store_size(instr.operands[0].type) > low:
                    return False
        elif (instr.opcode in ACCESSES and instr.opcode != "load") or (instr.is_call and any(
            arguments_of(induction.address(a)[0]) & read.keys() for a in instr.args if a.type.is_ptr
        )):
            return False
    return True


def arguments_of(pointer: Value) -> set[int]:
    """The arguments that a pointer may be, through choices and pointers that change places."""
    found = [pointer]
    for value in found:
        if isinstance(value, Instruction) and value.opcode in ("phi", "select"):
            found += [v for v in value.operands if v.type.is_ptr and v not in found]
    return {value.index for value in found if isinstance(value, Argument)}


def _widened(call: DerivativeCall, members: Sequence[_Member]) -> DerivativeCall:
    """The call with the members among its parameters."""
    fn, count = call.function, len(call.parameters)
    wide = Function(fn.name or "", ty.function(fn.ftype.ret, (*fn.ftype.params, *(m.given for m in members))))
    for new, old in zip(wide.args, fn.args, strict=False):
        new.attrs, new.name = old.attrs, old.name
    parameters: list[Parameter] = list(call.parameters)
    for m in members:
        parameters.append(replace(parameters[m.owner], activity="dup" if m.shadowed else "const",
                                  shadows=parameters[m.owner].shadows if m.shadowed else ()))  # fmt: skip
    elements = call.elements and (*call.elements[:count], *[""] * len(members), *call.elements[count:])
    return replace(call, function=wide, parameters=parameters, elements=elements)


def _text(module: Module, fn: Function, name: str) -> str:
    from irgrad.engine.ir.printer import to_text

    del module.functions[fn.name or ""]
    fn.name = name
    module.functions[name] = fn
    return to_text(module)
