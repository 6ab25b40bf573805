"""Variables that a call of the notation hands over, and that the function uses by their names as well.

    static double state[3];
    double f(double *s) { s[0] *= 2; return state[0]; }        __enzyme_autodiff(f, enzyme_dup, state, d)

The derivatives of what the parameter leads to are in the shadow that is given, those of the variable are elsewhere or
nowhere: what one of the two writes would be missing in the derivatives of what the other one reads. Whether a pointer
leads into such a variable is asked when the program calls, in front of the derivative; it stops there. The same for
variables that hold the pointer.

Method: the bytes of floats that are accessed behind each parameter and in each variable, from the offsets of addresses
(`value_ranges.py`). A pointer to a member of a struct leads to that member and no further. The same for pointers that
lie behind a parameter (`given_members.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR
from irgrad.engine.analyses.memory.carried_over import carried_over
from irgrad.engine.analyses.memory.objects import bits_of, found_group
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.differentiate.shared.copying import ASKED
from irgrad.engine.enzyme.apart import bytes_given
from irgrad.engine.enzyme.given_members import members, read_member
from irgrad.engine.enzyme.thunks import active, derivatives
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    ConstData,
    ConstInt,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import ACCESSES
from irgrad.engine.ir.rewrite import declare

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts
    from irgrad.engine.differentiate.roots import Derived
    from irgrad.engine.enzyme.calls import DerivativeCall

__all__ = ["Meeting", "Questions", "meetings"]

_FAR = 1 << 40
_APART = "irgrad.given.apart"


@dataclass(frozen=True, slots=True)
class Meeting:
    """A parameter (its number) that must not lead `first` to `first + size` bytes behind a variable, or behind the
    pointer that lies `held` bytes behind the variable's start; path, read: it is the pointer there, or what
    that instruction reads, that must not, see `given_members.py`."""

    parameter: int
    variable: GlobalVariable
    first: int
    size: int
    held: int = -1
    path: tuple[int, ...] = ()
    read: Instruction | None = None


@dataclass(slots=True)
class _Span:
    low: int = _FAR
    high: int = -_FAR
    written: bool = False

    def add(self, offsets: Offsets, size: int, written: bool) -> None:
        known = all(count is not None for _, count in offsets.terms) and size > 0
        reach = sum(stride * (count or 0) for stride, count in offsets.terms)
        self.low = min(self.low, -_FAR if offsets.below else offsets.start)
        self.high = max(self.high, offsets.start + reach + size if known else _FAR)
        self.written = self.written or written


def meetings(facts: Facts, kinds: Sequence[str], known: Sequence[int]) -> list[Meeting]:
    """What would be wrong, by the kind ("dup" or "const") of each argument of the root. Memory that is constant, and
    that nothing writes, may be read in two ways. known: the bytes that the caller has, see `bytes_given`."""
    pointers = facts.pointers
    spans: dict[int, _Span] = {}
    floats = list(_floats(facts))
    for address, size, written in floats:
        for bit, offsets in facts.types.ranges.places(address).items():
            spans.setdefault(bit, _Span()).add(offsets, size, written)
    variables = [(var, span) for bit, span in spans.items() if isinstance(var := pointers.objects[bit].site,
                 GlobalVariable) and not var.constant and not (var.name or "").startswith("irgrad.")]  # fmt: skip
    found: list[Meeting] = []
    holders = list(_holders(facts, spans))
    for number, (formal, kind) in enumerate(zip(pointers.root.args, kinds, strict=False)):
        obj = pointers.object_of.get(formal)
        own = spans.get(obj.index) if obj is not None else None
        if own is None or "noalias" in formal.attrs.split():
            continue
        for var, other in variables:
            if kind == "dup" or own.written or other.written:
                found += [Meeting(number, var, first, size) for first, size in _inside(var.value_type, own, other)]
        found += [Meeting(number, var, 0, 1, at) for var, at, written in holders
                  if kind == "dup" or own.written or written]  # fmt: skip
    for one in members(facts, kinds, known, frozenset(address for address, *_ in floats)) if variables else ():
        own = _Span(-_FAR if one.low is None else one.low, _FAR if one.high is None else one.high)
        for var, other in variables:
            found += [Meeting(one.parameter, var, first, size, path=one.path, read=one.read)
                      for first, size in _inside(var.value_type, own, other)]  # fmt: skip
    return found


def _floats(facts: Facts) -> Iterator[tuple[Value, int, bool]]:
    """Addresses of floats that are accessed, bytes (0: not known), and whether they are written."""
    for fn in facts.pointers.functions:
        for instr in fn.instructions():
            if instr.opcode in ACCESSES:
                address = instr.operands[instr.traits.address]
                type_ = instr.operands[0].type if instr.opcode == "store" else instr.type
                size = ty.store_size(type_)
                kinds = [kind for _, kind in facts.types.access(address, size) if kind not in (INT, PTR)]
                if type_.scalar.is_float or not all(isinstance(kind, ty.Type) and kind.is_int for kind in kinds):
                    yield address, size, instr.opcode != "load"
            elif instr.is_call and (effect := facts.pointers.effect(instr)) is not None and effect.copy is not None:
                target, source, _ = effect.copy
                yield instr.args[target], 0, True
                yield instr.args[source], 0, False


def _inside(type_: ty.Type, own: _Span, other: _Span) -> Iterator[tuple[int, int]]:
    """Where in a variable a pointer must not lead: (first byte, bytes)."""
    whole, parts = type_, [(0, ty.size_of(type_))]
    while isinstance(whole, ty.ArrayType):
        whole = whole.elem
    if isinstance(whole, ty.StructType) and whole.fields:
        parts = [(at, ty.size_of(field)) for at, field in zip(ty.field_offsets(whole), whole.fields, strict=False)]
        parts = parts if whole is type_ else parts[:0]
        if max(own.low, other.low) < min(own.high, other.high):  # the parameter is the struct, or the array of them
            yield 0, 1
    for at, size in parts:
        low, high = max(at, other.low), min(at + size, other.high)
        if low < high:  # floats of this member are used by name
            first = max(at, low - own.high + 1 if own.high < _FAR else at)
            last = min(at + size, high - own.low if own.low > -_FAR else at + size)
            if first < last:
                yield first, last - first


def _holders(facts: Facts, spans: dict[int, _Span]) -> Iterator[tuple[GlobalVariable, int, bool]]:
    """Variables that hold a pointer to floats since before the call: where in them, and whether these are written."""
    pointers = facts.pointers
    rows: dict[tuple[GlobalVariable, int], bool] = {}
    for call in pointers.root.instructions():
        if call.is_call and found_group(call) is not None and pointers.object_of[call].index in spans:
            _held(facts, rows, call.args[0], spans[pointers.object_of[call].index].written)
    for address, _, written in _floats(facts):
        if pointers.of(address) & 1:
            _held(facts, rows, address, written)
    if not rows:
        return
    carried = carried_over(pointers, facts.types.ranges.places, overlaps=False)
    names = {pointers.objects[bit].site for bit in bits_of(carried)}
    for (var, at), written in rows.items():
        if var in names:
            yield var, at, written


def _held(facts: Facts, rows: dict[tuple[GlobalVariable, int], bool], address: Value, written: bool) -> None:
    """The variable that an address was loaded from, if any."""
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        address = address.operands[0]
    if not isinstance(address, Instruction) or address.opcode != "load":
        return
    for bit, offsets in facts.types.ranges.places(address.operands[0]).items():
        var = facts.pointers.objects[bit].site
        if isinstance(var, GlobalVariable) and not var.constant and offsets.exact:
            place = var, offsets.start
            rows[place] = rows.get(place, False) or written


class Questions:
    """What a derivative has to ask: found before it is made, put into it afterwards."""

    def __init__(self, call: DerivativeCall) -> None:
        self.call = call
        self.found: list[Meeting] = []
        self.marked: dict[str, list[Meeting]] = {}
        self.before: frozenset[str] = frozenset()

    def analysed(self, facts: Facts) -> None:
        """Find them, and mark what reads the pointers, of which copies keep the mark."""
        self.before = frozenset(facts.pointers.module.functions)
        self.found, self.marked = [], {}
        for meeting in meetings(facts, active(self.call), bytes_given(self.call)):
            if meeting.read is None:
                self.found.append(meeting)
                continue
            mark = meeting.read.metadata.setdefault(ASKED, str(len(self.marked)))
            self.marked.setdefault(mark, []).append(meeting)

    def ask(self, module: Module, derived: Derived) -> None:
        """Let the derivative begin with the questions, of two halves the first that runs, and ask the others where the
        pointers are read."""
        names = derivatives(self.call, derived.name)
        fn = module.functions[names[-1 if self.call.untaped else 0]]
        kinds = active(self.call)
        shadowed = [kind == "dup" or number in derived.scratch for number, kind in enumerate(kinds)]
        block = fn.blocks[0]
        allocas = [n for n, instr in enumerate(block.instructions) if instr.opcode == "alloca"]
        b = Builder(block, at=allocas[-1] + 1 if allocas else 0)
        for meeting in self.found:
            formal = fn.args[meeting.parameter + sum(shadowed[: meeting.parameter])]
            self._question(module, b, read_member(module, b, formal, meeting.path), meeting)
        for other in list(module.functions.values()) if self.marked else ():
            for instr in list(other.instructions()):
                mark = instr.metadata.pop(ASKED, None)
                if mark is None or other.name in self.before or instr.block is None:
                    continue
                b = Builder(instr.block, at=instr.block.instructions.index(instr) + 1)
                for meeting in self.marked[mark]:
                    self._question(module, b, instr, meeting)

    def _question(self, module: Module, b: Builder, pointer: Value, meeting: Meeting) -> None:
        var, name = meeting.variable, self.call.function.name
        lies = "leads into the variable `{}`" if meeting.held < 0 else "is the pointer that the variable `{}` holds"
        by = f", by the pointer {' and then '.join(map(str, meeting.path))} bytes behind it," if meeting.path else ""
        by = ", by a pointer behind it," if meeting.read is not None else by
        words = (f"irgrad: parameter {meeting.parameter + 1} of `{name}`{by} {lies.format(var.name)}, which the "
                 "function uses by its name too, so that its derivatives have two places (differentiated by "
                 f"{self.call.where}); use the parameter in place of the variable\n")  # fmt: skip
        start: Value = module.globals[var.name or ""]
        if meeting.held >= 0:
            start = b.load(ty.PTR, b.gep(ty.I8, start, meeting.held) if meeting.held else start)
        rows = [ConstInt(ty.I64, n) for n in (meeting.first, meeting.size, len(words.encode()))]
        b.call(_teller(module), [pointer, start, rows[0], rows[1], _told(module, words), rows[2]])


def _teller(module: Module) -> Function:
    """void (pointer, start, first, size, words, their length): whether the pointer leads there."""
    if _APART in module.functions:
        return module.functions[_APART]
    ptr, i64 = ty.PTR, ty.I64
    fn = Function(_APART, ty.function(ty.VOID, (ptr, ptr, i64, i64, ptr, i64)))
    fn.head, fn.tail = "internal", "alwaysinline"
    fn.blocks = entry, stop, end = [Block(name) for name in ("entry", "stop", "end")]
    for block in fn.blocks:
        block.function = fn
    address, start, first, size, words, length = fn.args
    b = Builder(entry)
    ahead = b.sub(b.cast("ptrtoint", address, i64), b.cast("ptrtoint", start, i64), ())
    b.cond_br(b.icmp("ult", b.sub(ahead, first, ()), size), stop, end)
    b = Builder(stop)
    b.call(declare(module, "write", i64, (ty.I32, ptr, i64)), [ConstInt(ty.I32, 2), words, length])
    b.call(declare(module, "abort", ty.VOID, ()), [])
    b.insert(Instruction("unreachable", ty.VOID, []))
    Builder(end).ret()
    module.functions[_APART] = fn
    return fn


def _told(module: Module, words: str) -> GlobalVariable:
    data = words.encode()
    type_ = ty.array(len(data), ty.I8)
    name = f"irgrad.given.{sum(key.startswith('irgrad.given.') for key in module.globals)}"
    module.globals[name] = var = GlobalVariable(name, type_, ConstData(type_, data), True, "private")
    return var
