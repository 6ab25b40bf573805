"""Which loops can be run again from a copy of what they change, and what that is.

Running iterations again gives the same where nothing in them reaches the outside world, what they allocate stays within
an iteration, and all memory that they write, and read before it changes, is what it was. The place and the bytes of
that memory have to be known before the loop: of a whole object, or of what the loop touches of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.never_returning import live_exits
from irgrad.engine.analyses.control.promises import SILENT
from irgrad.engine.analyses.evolution.ahead import Ahead
from irgrad.engine.analyses.evolution.coverage import Cover, coverage
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.regions import Region, Regions, emit_union
from irgrad.engine.analyses.evolution.row_regions import RowRegion, RowRegions, row_of
from irgrad.engine.analyses.evolution.trips import Expr, TripCount, const, make
from irgrad.engine.analyses.memory.call_effects import Effect, facts_of
from irgrad.engine.analyses.memory.modref import instr_reads, instr_writes, own_reads_writes
from irgrad.engine.analyses.memory.objects import Object, bits_of, resolve
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.tbaa import AccessTypes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, Function, GlobalVariable, Instruction, Value, is_zero
from irgrad.engine.normalise.run_again import BEGINS, Again, called_by
from irgrad.rules.effects import facts
from irgrad.rules.lookup import find

__all__ = ["Bytes", "Memory", "Repeatable", "marks_lifetime"]

Bytes: TypeAlias = int | tuple[Any, ...]
"""A number of bytes: known, or (argument, bits, signed), the integer that an argument of the root leads to, or
(operator, left, right) of two such."""
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem"}


Place: TypeAlias = Callable[[Builder, Value | None], tuple[Value, Value]]
"""Writes an address and a number of bytes at the end of the block before a loop, given how often it runs, if known."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A piece of memory whose place and bytes are known before a loop. `object`: it is all of that; `cover`: what each
    iteration writes of it before it reads, where that may be all that it reads."""

    object: Object | None
    place: Place
    cover: Cover | None = None


Rows: TypeAlias = Callable[[Builder, Value | None], list[Value]]
"""Writes which rows of a table a loop touches, and how far, in the same place and given the same; see `RowRegion`."""


@dataclass
class Repeatable:
    """A loop, and what has to be saved to run it again.

    bytes_of: of each argument of the root, the bytes of its memory, or None
    private: variables of the function that only an iteration uses; body: instructions of the loop and of what it
    calls; inside: the functions that it calls, and they; refusal: why the loop cannot run again, "" where it can
    """

    pointers: Pointers
    fn: Function
    loop: Loop
    bytes_of: Sequence[Bytes | None]
    refusal: str = ""
    saved: list[Memory] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    private: set[Instruction] = field(default_factory=set)
    body: list[Instruction] = field(default_factory=list)
    inside: set[Function] = field(default_factory=set)
    _written: int = 0

    def __post_init__(self) -> None:
        self.body = self._body()
        self.refusal = self._calls() or self._memory()

    # -- what it calls -------------------------------------------------------------------------------------------------

    def _body(self) -> list[Instruction]:
        """The instructions of the loop and of what it calls."""
        found = [instr for block in self.loop.blocks for instr in block.instructions]
        for instr in found:  # grows
            for callee in self.pointers.callees(instr) or () if instr.is_call else ():
                if callee not in self.inside and callee.blocks:
                    self.inside.add(callee)
                    found += callee.instructions()
        return found

    def _calls(self) -> str:
        for instr in self.body:
            if instr.volatile or instr.ordering or instr.opcode in ("invoke", "va_arg"):
                return f"{self._at(instr)} is volatile, atomic or of an unknown effect"
            if instr.opcode == "alloca" and self.loop.contains(instr.block):
                return f"{self._at(instr)} makes a variable in each iteration"
            if instr.is_call and not self._repeats(instr):
                name = instr.callee_name or "a function through a pointer"
                return f"`{name}` is called ({self._at(instr)}), and nothing says that a second call would do the same"
        return ""

    def _repeats(self, call: Instruction) -> bool:
        callee = resolve(call.callee)
        if not isinstance(callee, Function):
            return bool(self.pointers.callees(call))
        name = callee.name or ""
        if not callee.is_declaration or name.startswith(SILENT):
            return True
        rules = self.pointers.module.rules
        if find(name) is not None or (rules is not None and rules.registered(callee)):
            return True
        known = facts(name)
        return known is not None and known.kind in ("pure", "allocator", "deallocator", "copy", "fill")

    def _at(self, instr: Instruction) -> str:
        return locate(self.pointers.module, instr) or f"`{instr.opcode}`"

    # -- its memory ----------------------------------------------------------------------------------------------------

    def _memory(self) -> str:
        pointers, body = self.pointers, self.body
        written = read = 0
        for instr in body:
            written |= instr_writes(pointers, instr)
            read |= instr_reads(pointers, instr)
        own = self._own()
        refusal = self._leaves(own, body)
        if refusal:
            return refusal
        refusal = self._other_addresses(own)
        if refusal:
            return refusal
        later = self._changed_later()
        unknown, because, self._written = 0, "", written
        for index in bits_of((written | (read & later)) & ~own):
            memory = self.locate(pointers.objects[index])
            if isinstance(memory, str):
                unknown, because = unknown | 1 << index, because or memory
            else:
                cover = self._cover(pointers.objects[index]) if written >> index & 1 else None
                self.saved.append(replace(memory, cover=cover))
        return self._pieces(unknown, later, because) if unknown else ""

    def _cover(self, obj: Object) -> Cover | None:
        """What iterations write of an object before they read it."""
        site = obj.site
        if site is None:
            return None
        address = self._address(site) if isinstance(site, Instruction) else None
        bases = self._or_null([site] if address is None else list(dict.fromkeys((site, address))))
        return coverage(self._ahead, self.pointers, 1 << obj.index, bases)

    def _or_null(self, bases: list[Value]) -> list[Value]:
        """With those that are one of these or null, which nothing is accessed through."""
        found = dict.fromkeys(bases)
        for instr in self.fn.instructions():
            if instr.opcode == "select" and instr.type.is_ptr and self._before(instr):
                rest = [v for v in instr.operands[1:] if not is_zero(v)]
                if len(rest) == 1 and rest[0] in found:
                    found[instr] = None
        return list(found)

    def _pieces(self, unknown: int, later: int, because: str) -> str:
        """Of objects whose bytes are not known, what the loop touches; why that is not known either."""
        found: dict[Value, list[Region]] = {}
        tables: dict[RowRegion, None] = {}
        for instr in self.body:
            read, written = own_reads_writes(self.pointers, instr)
            if not (written | (read & later)) & unknown:
                continue
            if not self.loop.contains(instr.block):
                return f"{because}, and what a function that it calls does to them is not told ({self._at(instr)})"
            rows = _touched(self.pointers, instr, reads=bool(read & later & unknown), writes=bool(written & unknown))
            for pointer, size in rows or ():
                row = row_of(self._ahead, pointer)
                if row is not None:
                    behind = self._behind(instr, row, pointer, size)
                    if isinstance(behind, str):
                        return f"{because}, and of {self._at(instr)}: {behind}"
                    tables |= dict.fromkeys(behind)
                    continue
                regions = self.regions.of(instr, pointer, size)
                if isinstance(regions, str):
                    return f"{because}, and of {self._at(instr)}: {regions}"
                if len(regions) > 1 and self.count() is None:
                    return f"{because}, and how often buffers change places is not known ({self._at(instr)})"
                for region in regions:
                    found.setdefault(region.base, []).append(region)
            if rows is None:
                return f"{because}, and what {self._at(instr)} does to them is not told"
        self.saved += [Memory(None, partial(emit_union, regions=regions)) for regions in found.values()]
        self.rows += [partial(_emit_rows, self._ahead, region) for region in tables]
        return ""

    def _behind(self, instr: Instruction, row: Instruction, pointer: Value, size: Value) -> list[RowRegion] | str:
        """What an access touches behind an address that it loads."""
        for table in self._row_regions.tables(row):
            read = own_reads_writes(self.pointers, table)[0]
            for other in self.body if read & self._written else ():
                if own_reads_writes(self.pointers, other)[1] & read and not (
                    other.opcode == "store" and self._types.apart(table, other)):  # fmt: skip
                    return f"its address is read from memory that the loop writes ({self._at(other)})"
        return self._row_regions.of(instr, row, pointer, size)

    @cached_property
    def _types(self) -> AccessTypes:
        return AccessTypes(self.pointers.module)

    @cached_property
    def _row_regions(self) -> RowRegions:
        return RowRegions(self._ahead, self._length, counted=self.count() is not None)

    def _length(self, row: Instruction) -> Expr | None:
        """The bytes of the allocations to whose begin a loaded address leads, where all are as long."""
        begin, lengths = self.again.ranges.offsets(row), list[Expr]()
        if not begin.exact or begin.start:
            return None
        for index in bits_of(self.pointers.of(row)):
            obj = self.pointers.objects[index]
            factors = self._factors(obj.site) if isinstance(obj.site, Instruction) and obj.site.is_call else None
            if obj.function is not self.fn or not factors or not all(map(self._before, factors)):
                return None
            if any(self._anew(factor) for factor in factors):
                return None
            total = const(1)
            for factor in factors:
                total = make("mul", total, const(factor.value) if isinstance(factor, ConstInt) else ("value", factor))
            lengths.append(total)
        return lengths[0] if lengths and all(each == lengths[0] for each in lengths) else None

    def count(self) -> TripCount | None:
        """How often the loop is repeated, where that is known before it and nothing else ends it."""
        loop = self.loop
        count = Induction(self.fn).trip_count(loop)
        alone = loop.exiting == loop.latches and len(loop.exits) == 1
        return count if count is not None and count.certain and alone else None

    @cached_property
    def _ahead(self) -> Ahead:
        return Ahead(self.fn, self.loop)

    @cached_property
    def regions(self) -> Regions:
        """The regions of memory that its accesses touch."""
        return Regions(self.fn, self.loop)

    @cached_property
    def again(self) -> Again:
        """What may be another one when the loop is run again."""
        return Again(self.pointers, self.fn, self.loop, self.inside)

    def _own(self) -> int:
        """Objects that begin and end within an iteration."""
        mask = 0
        for obj in self.pointers.objects:
            site = obj.site
            if not isinstance(site, Instruction) or site.block is None:
                continue
            if self.loop.contains(site.block) or self._begins_in_call(obj):
                mask |= 1 << obj.index
            elif obj.kind == "alloca" and obj.function is self.fn and self._scratch(site):
                self.private.add(site)
                mask |= 1 << obj.index
        return mask

    def _begins_in_call(self, obj: Object) -> bool:
        """Whether an object is made by what the loop calls, and was not there before: nobody else makes it, or it is a
        variable of a function that is not under way while the loop runs."""
        made = obj.function
        if made is None or made not in self.inside or made is self.fn:
            return False
        if made not in self._outside:
            return True
        return obj.kind == "alloca" and self.fn not in called_by(self.pointers, made.instructions())

    @cached_property
    def _outside(self) -> set[Function]:
        """Functions that are reached by other ways than through the loop."""
        others = [fn for fn in self.pointers.functions if fn is self.fn or fn not in self.inside]
        around = (instr for fn in others for instr in fn.instructions()
                  if fn is not self.fn or not self.loop.contains(instr.block))  # fmt: skip
        return called_by(self.pointers, around)

    def _scratch(self, variable: Instruction) -> bool:
        """Whether the life of a variable begins in an iteration, and nothing outside of the loop uses it."""
        begins = False
        for block in self.fn.blocks:
            for instr in block.instructions:
                if variable not in instr.operands:
                    continue
                marks = marks_lifetime(instr)
                if not self.loop.contains(block):
                    if not marks:
                        return False
                    continue
                begins = begins or (marks and (instr.callee_name or "").startswith(BEGINS))
        return begins

    def _leaves(self, own: int, body: Sequence[Instruction]) -> str:
        """Why what an iteration allocates outlives it, or what it frees is older."""
        pointers = self.pointers
        outside = (1 << len(pointers.objects)) - 1 & ~own
        if pointers.reachable(outside) & own:
            return "an iteration leaves the address of its own memory behind"
        leaving = (phi for block in live_exits(self.fn, self.loop) for phi in block.phis)
        for phi in (*self.loop.header.phis, *leaving):
            if pointers.of(phi) & own:
                return "an iteration hands on memory that it made"
        for instr in body:
            effect = pointers.effect(instr) if instr.is_call else None
            if self._keeps_address(instr, effect, own):
                return f"an address is stored in memory that outlives an iteration ({self._at(instr)})"
            if effect is not None and effect.frees is not None:
                freed = pointers.of(instr.args[effect.frees])
                if freed & ~own:
                    return f"memory from before the loop is freed in it ({self._at(instr)})"
        return ""

    def _keeps_address(self, instr: Instruction, effect: Effect | None, own: int) -> bool:
        """Whether an address goes into memory from before the loop: its shadow would have to go there as well."""
        pointers = self.pointers
        if instr.opcode == "store":
            return bool(pointers.of(instr.operands[0]) and pointers.of(instr.operands[1]) & ~own)
        moved = effect.copy or effect.fill if effect is not None else None
        if effect is None or moved is None:
            return False
        target = pointers.expand(pointers.of(instr.args[moved[0]])) & ~own
        looked = target | (pointers.expand(pointers.of(instr.args[moved[1]])) if effect.copy else 0)
        held = any(pointers.contents(pointers.objects[index]) for index in bits_of(looked))
        return bool(target) and held and self._loads_addresses(looked)

    def _loads_addresses(self, mask: int) -> bool:
        """Whether anything that may be an address is loaded from these objects, or from where they are copied to."""
        pointers = self.pointers
        every = [instr for fn in pointers.functions for instr in fn.instructions()]
        moves = [(instr, effect.copy) for instr in every if instr.is_call
                 if (effect := pointers.effect(instr)) is not None and effect.copy]  # fmt: skip
        before = 0
        while before != mask:
            before = mask
            for instr, (target, source, _) in moves:
                if pointers.expand(pointers.of(instr.args[source])) & mask:
                    mask |= pointers.expand(pointers.of(instr.args[target]))
        return any(instr.opcode == "load" and ty.may_hold_pointer(instr.type)
                   and pointers.expand(pointers.of(instr.operands[0])) & mask for instr in every)  # fmt: skip

    def _other_addresses(self, own: int) -> str:
        """Why an address that the loop reads from memory may be another one when the loop is run again: its shadow lies
        in shadow memory, which is not put back."""
        changed = self.again.readdressed() & ~own
        for instr in self.body if changed else ():
            number = instr.opcode == "load" and not ty.may_hold_pointer(instr.type)
            if number or not own_reads_writes(self.pointers, instr)[0] & changed:
                continue
            if instr.opcode != "load" or self.again.readdresses(instr):
                return f"an address that it reads may be another one when it is run again ({self._at(instr)})"
        return ""

    def _changed_later(self) -> int:
        """Objects that may change between the loop and its reverse: what is written behind it, or by whoever calls."""
        pointers, mask = self.pointers, 0
        for instr in self.again.behind():
            effect = pointers.effect(instr) if instr.is_call else None
            if effect is None or effect.frees is None:  # what is freed is so when the reverse sweep is through
                mask |= instr_writes(pointers, instr)
        if self.fn is not pointers.root:
            for fn in pointers.functions:
                if fn is not self.fn and fn not in self.inside:
                    mask |= pointers.writes(fn)
        return mask

    def locate(self, obj: Object) -> Memory | str:
        """Where an object lies, as it is known before the loop; or why that is not known."""
        site = obj.site
        if isinstance(site, Instruction) and obj.function is self.fn:
            address, factors = self._address(site), self._factors(site)
            if address is not None and not self.again.newest(obj, site):
                return f"of {obj}, which it writes, there may be several from before it"
            if address is not None and factors is not None and all(map(self._before, factors)):
                return Memory(obj, lambda b, _: (address, _product(b, address, factors)))
        if isinstance(site, GlobalVariable) and obj.size is not None:
            bytes_ = ConstInt(ty.I64, obj.size)
            return Memory(obj, lambda *_: (site, bytes_))
        if obj.kind == "argument" and isinstance(site, Argument) and self.fn is self.pointers.root:
            count = self.bytes_of[site.index] if site.index < len(self.bytes_of) else None
            if count is None:
                name = site.name or str(site.index)
                return f"the bytes behind argument `{name}` are not known: a size in its shape is no C parameter"
            return Memory(obj, lambda b, _: (site, emit_bytes(b, self.fn, count)))
        if obj.kind == "unknown":
            return "it writes to memory of which nothing is known"
        if obj.kind == "argument":
            return f"it stands in `{self.fn.name}`, which is called with memory of unknown size"
        return f"the bytes of {obj}, which it writes, are not known before it"

    def _before(self, value: Value) -> bool:
        """Whether a value is known before the loop."""
        if not isinstance(value, Instruction):
            return True
        assert self.loop.preheader is not None and value.block is not None
        inside = self.loop.contains(value.block)
        return not inside and get(Dominators, self.fn).dominates(value.block, self.loop.preheader)

    def _anew(self, value: Value) -> bool:
        """Whether a value that is known before the loop was another one earlier, in a loop that is over."""
        around = get(Loops, self.fn).of(value.block) if isinstance(value, Instruction) and value.block else None
        return around is not None and not around.contains(self.loop.preheader)

    def _address(self, site: Instruction) -> Value | None:
        """The one address that an allocation gave before the loop, or null; None where there may be several."""
        inner = get(Loops, self.fn).of(site.block)  # type: ignore[arg-type]
        if self.loop.contains(site.block) or (inner is not None and not inner.contains(self.loop.preheader)):
            return None
        same: list[Value] = [site]
        phis = [instr for instr in self.fn.instructions() if instr.opcode == "phi" and instr.type.is_ptr]
        for _ in phis:
            if self._before(same[-1]):
                return same[-1]
            more = [phi for phi in phis if phi not in same and all(o in same or is_zero(o) for o in phi.operands)]
            if not more:
                return None
            same.append(more[0])
        return same[-1] if self._before(same[-1]) else None

    def _factors(self, site: Instruction) -> list[Value] | None:
        """The product of these is the bytes of an allocation."""
        if site.opcode == "alloca":
            assert site.elem is not None
            return [ConstInt(ty.I64, ty.size_of(site.elem)), site.operands[0]]
        callee = resolve(site.callee) if site.is_call else None
        known = facts_of(self.pointers.module, callee) if isinstance(callee, Function) else None
        return [site.args[i] for i in known.sizes] if known is not None and known.sizes else None


def _emit_rows(ahead: Ahead, region: RowRegion, b: Builder, iterations: Value | None) -> list[Value]:
    return region.emit(ahead.writer(b), iterations)


def _touched(
    pointers: Pointers, instr: Instruction, *, reads: bool, writes: bool
) -> list[tuple[Value, Value]] | None:
    """The addresses through which an instruction reads or writes, and how many bytes; None where that is not told."""
    if instr.opcode in ("load", "store"):
        kind = instr.type if instr.opcode == "load" else instr.operands[0].type
        return [(instr.operands[-1], ConstInt(ty.I64, ty.store_size(kind)))]
    effect = pointers.effect(instr) if instr.is_call else None
    moved = effect.copy or effect.fill if effect is not None else None
    if effect is None or moved is None:
        return None
    rows = [(instr.args[moved[0]], instr.args[moved[2]])] if writes else []
    return [*rows, (instr.args[moved[1]], instr.args[moved[2]])] if reads and effect.copy else rows


def marks_lifetime(instr: Instruction) -> bool:
    """Whether an instruction says where the life of a variable begins or ends."""
    return instr.is_call and (instr.callee_name or "").startswith("llvm.lifetime.")


def _product(b: Builder, address: Value, factors: Sequence[Value]) -> Value:
    """The bytes of an allocation; none where it was not made."""
    total: Value = ConstInt(ty.I64, 1)
    for factor in factors:
        total = b.mul(total, b.to_i64(factor, signed=False), ())
    if isinstance(address, Instruction) and address.opcode == "phi":
        total = b.select(b.icmp("eq", address, zero(ty.PTR)), ConstInt(ty.I64, 0), total)
    return total


def emit_bytes(b: Builder, root: Function, bytes_: Bytes) -> Value:
    """A number of bytes at the end of a block of the root."""
    if isinstance(bytes_, int):
        return ConstInt(ty.I64, bytes_)
    if isinstance(bytes_[0], int):
        index, bits, signed = bytes_
        return b.to_i64(b.load(ty.int_(bits), root.args[index]), signed=bool(signed))
    left, right = emit_bytes(b, root, bytes_[1]), emit_bytes(b, root, bytes_[2])
    return b.binary(_OPERATORS[bytes_[0]], left, right)
