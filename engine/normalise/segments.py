"""Loops in segments of iterations: for reverse sweeps that keep states and not a tape of the whole loop.

Such a loop becomes two functions. What goes from one iteration to the next lies in a block of memory, the state; then a
segment can be run again from a copy of that and of the memory that the loop writes:

    f:          store what enters the loop in %state; call @f.segments(state, total, others...); load what leaves it
    f.segments: call @f.segment(state, total, ...)
    f.segment:  the loop itself, from %state to %state, for at most so many iterations; returns how many it ran

`differentiate.reverse.segments` writes the derivative of `f.segments`. What a loop has to be for this is asked in
`repeatable.py`: nothing it does may reach the outside world, what it allocates stays within an
iteration, and of all memory that it writes the place and the bytes are known before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.never_returning import live_exits
from irgrad.engine.analyses.control.places import loop_places
from irgrad.engine.analyses.evolution.row_regions import DEEPEST
from irgrad.engine.analyses.memory.objects import bits_of, overlap_mask
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.dead_ends import copied_ends, ends_of, is_plain
from irgrad.engine.normalise.known_cotangents import Sums
from irgrad.engine.normalise.one_iteration import internal, one_iteration, write_loop
from irgrad.engine.normalise.repeatable import Bytes, Memory, Repeatable, marks_lifetime
from irgrad.engine.normalise.run_again import called_by
from irgrad.rules.errors import Unsupported

__all__ = [
    "ENDLESS", "EVERY", "ROW", "Choice", "Outlined", "Segments", "begins_at", "no_loop", "outline_segments",
    "what_states_hold",
]  # fmt: skip

ENDLESS = 2**63 - 1
"""The number of iterations of a loop of which it is not known before it."""
ROW = 4 * DEEPEST + 2
"""Arguments of `f.segments` for the rows of one access, as `irgrad.segments.note` takes them."""
EVERY = "*"
"""In place of a line: all outermost loops that can run again."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a loop runs backwards.

    unit: iterations of which the tape is held at once; states: how many states are held at once, 0: one a unit; bytes:
    memory for both, in place of the two, 0: as these say; fused: no states, the primal sweep runs both sweeps of each
    iteration (see `known_cotangents.py`)
    """

    unit: int = 1
    states: int = 0
    bytes: int = 0
    fused: bool = False


@dataclass(slots=True)
class Segments:
    """A loop in segments. Arguments of `loop`: the state, the number of iterations, values from outside.

    step: the function of a segment; state: the type of the state; saved: of what a segment changes, the state apart:
    (place of the address, place of the bytes, place of the bytes that go from one iteration to the next) among the
    arguments; pointers: which fields of the state are addresses, and into which of `saved` and other memory, told by
    (place of the address, place of the bytes), they may lead; ends: the field that is not 0 when
    the loop is through, None where the number of iterations tells (the next field is how many the last segment ran);
    place: of the loop in the source; rows: where among the arguments stand those of `irgrad.segments.note`, for what a
    segment changes behind addresses in tables; sums: of a fused loop, by fields of the state: what takes a sum behind
    the loop, and its ways into memory, each told by the place among the arguments of base, address and factor; one: of
    a fused loop, the function of one iteration, with the arguments of `step` and an arena for its derivative; `step`
    is that as well where iterations never read what others wrote; goes_on: whether its sums leave it as they go on
    """

    loop: Function
    step: Function
    state: ty.StructType
    choice: Choice
    place: str
    saved: tuple[tuple[int, int, int], ...] = ()
    pointers: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    ends: int | None = None
    rows: tuple[int, ...] = ()
    sums: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    one: Function | None = None
    goes_on: bool = False


def outline_segments(
    module: Module, root: Function, choices: Mapping[str, Choice], bytes_of: Sequence[Bytes | None],
    fused: Mapping[Function, Segments] | None = None,
) -> tuple[dict[Function, Segments], dict[tuple[Function, str], str]]:  # fmt: skip
    """Outline the loops at the places `file.c:12` of the source (or `12`), or at all (`EVERY`). The functions
    `f.segments`, with what their derivatives need to know; why loops, by function and header, were left as they are.

    A function that a loop in segments calls is no place for outermost loops: each of its calls would have the memory
    of the whole.

    bytes_of: of each argument of the root, the bytes of its memory; fused: what was outlined before, returned too
    Raises Unsupported for a place without a loop, and for a loop that cannot run again, with the reason and the line.
    """
    found: dict[Function, Segments] = dict(fused or {})
    if not choices:
        return found, {}
    pointers = points_to(module, root)
    left: dict[tuple[Function, str], str] = {}
    met: set[str] = set()
    called = called_by(pointers, [i for made in found for i in made.instructions()])  # by loops in segments
    for fn in _callers_first(pointers, root):
        named = {wanted: choice for wanted, choice in choices.items() if wanted != EVERY or fn not in called}
        for loop, wanted in _chosen(module, fn, named):
            met.add(wanted)
            if len(found) > len(fused or {}):
                pointers = points_to(module, root)  # of the module as it is
            candidate = Outlined(module, Repeatable(pointers, fn, loop, bytes_of), choices[wanted])
            if candidate.refusal and wanted == EVERY:
                place = next(iter(loop_places(module, loop)), "").split(" ")[0] or f"`{loop.header.name}`"
                said = f"the loop at {place} keeps a tape of all its iterations: {candidate.refusal}"
                left[fn, loop.header.name or ""] = said
                continue
            if candidate.refusal:
                raise Unsupported(
                    f"the loop at {wanted} cannot be run again", where=f"@{(fn.name or '').removesuffix('.normal')}",
                    because=candidate.refusal, fix="leave it out of `checkpoint`, or move that out of the loop",
                )  # fmt: skip
            called |= candidate.again.inside
            made = candidate.move(len(found))
            found[made.loop] = made
    missing = [wanted for wanted in choices if wanted not in met and wanted != EVERY]
    if missing:
        raise no_loop(module, pointers, missing[0])
    return found, left


def what_states_hold(
    module: Module, pointers: Pointers, fn: Function, loop: Loop, bytes_of: Sequence[Bytes | None]
) -> tuple[int, list[Memory], int] | str:
    """Of a loop that could run in segments, what a state of it holds: bytes of numbers and addresses that go from one
    iteration to the next or leave the loop, pieces of memory, and how many accesses reach more through addresses in
    tables; of another, why it cannot. Nothing is changed."""
    candidate = Outlined(module, Repeatable(pointers, fn, loop, bytes_of), Choice())
    if candidate.refusal:
        return candidate.refusal
    return ty.size_of(candidate.state()), candidate.again.saved, len(candidate.again.rows)


def _callers_first(pointers: Pointers, root: Function) -> list[Function]:
    """The functions that are reached, each before those that it calls, as far as calls do not go round."""
    done: list[Function] = []
    seen = {root}
    stack = [(root, _callees(pointers, root))]
    while stack:
        fn, callees = stack[-1]
        callee = next(callees, None)
        if callee is None:
            done.append(fn)
            stack.pop()
        elif callee.blocks and callee not in seen:
            seen.add(callee)
            stack.append((callee, _callees(pointers, callee)))
    return [*reversed(done), *(fn for fn in pointers.functions if fn not in seen)]


def _callees(pointers: Pointers, fn: Function) -> Iterator[Function]:
    for instr in list(fn.instructions()):
        if instr.is_call:
            yield from pointers.callees(instr) or ()


def _chosen(module: Module, fn: Function, choices: Mapping[str, Choice]) -> Iterator[tuple[Loop, str]]:
    """The loops of a function that a choice speaks of, each with the words that name it, inner ones first: to the loop
    around it is then a call, which keeps states as well."""
    rows: list[tuple[Block, str]] = []
    for loop in sorted(get(Loops, fn).all, key=lambda loop: -loop.depth):
        every = EVERY if EVERY in choices and loop.depth == 1 else ""
        wanted = next((w for w in choices if begins_at(module, loop, w)), every)
        if wanted:
            rows.append((loop.header, wanted))
    for header, wanted in rows:  # the function changes on the way
        yield next(loop for loop in get(Loops, fn).all if loop.header is header), wanted


def begins_at(module: Module, loop: Loop, wanted: str) -> bool:
    """Whether a loop begins at `file.c:12`, or at line `12`; paths may be cut in front."""
    place = next(iter(loop_places(module, loop)), "").split(" ")[0].rpartition(":")[0]
    path, _, line = place.rpartition(":")
    file, _, number = wanted.rpartition(":")
    return bool(place) and line == number and (not file or path == file or path.endswith("/" + file))


def no_loop(module: Module, pointers: Pointers, wanted: str) -> Unsupported:
    """The error for a place at which no loop begins."""
    places = {place.rpartition(":")[0].rpartition("/")[2] for fn in pointers.functions
              for loop in get(Loops, fn).all for place in loop_places(module, loop)[:1]}  # fmt: skip
    there = ", ".join(f"`{place}`" for place in sorted(places))
    return Unsupported(
        f"there is no loop at `{wanted}`",
        because=f"the loops are at {there}" if there else "it has no loops, or was compiled without debug information",
        fix="name a loop by file and line of its begin, `irgrad explain` lists them",
    )


class Outlined:
    """A loop on its way out of its function."""

    def __init__(self, module: Module, again: Repeatable, choice: Choice, sums: Sums | None = None) -> None:
        self.module, self.again, self.choice, self.sums = module, again, choice, sums or Sums({})
        self.pointers, self.fn, self.loop = again.pointers, again.fn, again.loop
        self.known: list[Memory] = list(again.saved)
        self.leads: dict[Value, list[Memory]] = {}
        self.named: dict[tuple[Value, int], Memory] = {}
        self.ranges: dict[Instruction, Offsets] = {}
        self.exits, self.ends = live_exits(self.fn, self.loop), ends_of(self.fn, self.loop)
        self.refusal = self._form() or again.refusal or self._addresses()

    def _form(self) -> str:
        if self.loop.preheader is None or self.loop.latch is None:
            return "it is entered or repeated in more than one way"
        if not all(map(is_plain, self.ends)):
            return "it may end in a handler of exceptions"
        return ""

    def _addresses(self) -> str:
        """Addresses that go from one iteration to the next, or out of the loop, lead to memory that is known."""
        for phi in [*self.loop.header.phis, *self._leaving()]:
            if not phi.type.is_ptr:
                if ty.may_hold_pointer(phi.type) and self.pointers.of(phi):
                    return f"an iteration hands on an address as a number, `{phi.name or '?'}`"
                continue
            leads = self._leads(phi)
            if isinstance(leads, str):
                return f"an iteration hands on an address: {leads}"
            self.leads[phi] = leads
            self.known += [memory for memory in leads if memory not in self.known]
        return ""

    def _leads(self, phi: Instruction) -> list[Memory] | str:
        """The memory that an address may lead into: its bytes are asked to tell that of several objects apart."""
        mask = self.pointers.of(phi)
        found: list[Memory] = []
        for index in bits_of(mask):
            obj = self.pointers.objects[index]
            memory = next((m for m in self.known if m.object is obj), None) or self.again.locate(obj)
            if isinstance(memory, str):
                alone = mask == 1 << index and isinstance(obj.site, Argument) and self.fn is self.pointers.root
                return [self._named(obj.site, ENDLESS)] if alone else self._turns(phi) or memory  # type: ignore[arg-type]
            found.append(memory)
        return found

    def _turns(self, phi: Instruction) -> list[Memory]:
        """The addresses that change places with one another; none where that is not all they do."""
        inside = [v for v, b in zip(phi.operands, phi.blocks, strict=True) if self.loop.contains(b)]
        rows = [self.again.regions.bases(v) for v in (inside if phi.block is not self.loop.header else [phi])]
        return [] if None in rows else [self._named(v, 1) for row in rows for v in row or ()]

    def _named(self, address: Value, size: int) -> Memory:
        """So many bytes at an address that is known before the loop."""
        return self.named.setdefault((address, size), Memory(None, lambda *_: (address, ConstInt(ty.I64, size))))

    # -- the way out ---------------------------------------------------------------------------------------------------

    def _leaving(self) -> list[Instruction]:
        return [phi for block in self.exits for phi in block.phis]

    def state(self) -> ty.StructType:
        """The type of what goes from one iteration to the next, or leaves the loop."""
        return ty.struct((*(phi.type for phi in (*self.loop.header.phis, *self._leaving())), ty.I64, ty.I64))

    def move(self, number: int) -> Segments:
        """Move the loop into two functions, and call the first in its place."""
        fn, loop, before = self.fn, self.loop, self.loop.preheader
        assert before is not None
        place = next(iter(loop_places(self.module, loop)), "")
        carried, leaving, state = loop.header.phis, self._leaving(), self.state()
        ends = len(carried) + len(leaving)
        outer, debug, count = self._outer(), _debug_of(before), self.again.count()
        ranges = self.again.again.ranges
        self.ranges = {phi: ranges.offsets(phi) for phi in carried if phi.type.is_int}
        before.instructions.pop()
        block = _variable(fn, state)
        at = Builder(before)
        at.metadata = debug
        total = at.add(count.emit(at), ConstInt(ty.I64, 1), ()) if count is not None else None
        for n, phi in enumerate(carried):
            at.store(phi.operands[phi.blocks.index(before)], at.field(state, block, n))
        if total is None:
            at.store(ConstInt(ty.I64, 0), at.field(state, block, ends))
        extra: list[Value] = []
        places: dict[Memory, tuple[int, int, int]] = {}
        first = 2 + len(outer)
        for memory in self.known:
            here = first + len(extra)
            address, size = memory.place(at, total)
            extra += [address, size]
            if memory.cover is not None:
                extra.append(at.select(memory.cover.emit(at, size), ConstInt(ty.I64, 0), size))
            places[memory] = (here, here + 1, here + (1 if memory.cover is None else 2))
        rows = tuple(first + len(extra) + ROW * n for n in range(len(self.again.rows)))
        for row in self.again.rows:
            extra += row(at, total)
        sums: dict[int, dict[int, list[int]]] = {}
        goes_on = total is not None and self.sums.leave_as_they_go_on(loop)
        memo: dict[Value, Value] = {value: value for value in self.sums.moved}
        for phi, taken in self.sums.leaving.items():
            for taker, ways in taken.items():
                here, place_of = first + len(extra), len(carried) + leaving.index(taker)
                sums.setdefault(carried.index(phi), {})[place_of] = list(range(here, here + 3 * len(ways), 3))
                extra += [value for way in ways for value in way.emit(at, memo)]
        _live_throughout(fn, outer)
        alone = [self._alone(value, outer) for value in outer]
        name = f"{fn.name}{'.fused' * self.choice.fused}"
        step = self._segment(f"{name}.segment.{number}", state, outer, counted=total is not None)
        for arg, value in zip(step.args[2:], alone, strict=True):
            arg.attrs = "noalias" if value else ""
        last = None if total is not None else ends
        one = one_iteration(self.module, step, f"{name}.one.{number}") if self.choice.fused else None
        carried_on = [places[m][2] for m in self.again.saved if m.cover is not None]
        if one is not None and not carried_on:
            del self.module.functions[str(step.name)]
            step = one
        types = [*(v.type for v in outer), *(v.type for v in extra)]
        whole = internal(self.module, f"{name}.segments.{number}", ty.VOID, [ty.PTR, ty.I64, *types])
        write_loop(whole, step, one, state, last, carried_on)
        at.call(whole, [block, total if total is not None else ConstInt(ty.I64, ENDLESS), *outer, *extra])
        self._go_on(at, state, block, len(carried), last)
        leads = {n: tuple(places[m][:2] for m in self.leads[phi])
                 for n, phi in enumerate([*carried, *leaving]) if phi in self.leads}  # fmt: skip
        saved = tuple(places[m] for m in self.again.saved)
        return Segments(whole, step, state, self.choice, place, saved, leads, last, rows, sums, one, goes_on)

    def _outer(self) -> list[Value]:
        """Values from outside that the loop uses, without constants and its own variables."""
        private, inside = self.again.private, dict.fromkeys([*self.loop.blocks, *self.ends])
        used = [value for block in inside for instr in block.instructions if instr.opcode != "phi"
                for value in instr.operands]  # fmt: skip
        merged = [*(block.phis for block in inside), *(block.phis for block in self.exits)]
        used += [v for phis in merged for phi in phis for v, b in zip(phi.operands, phi.blocks, strict=True)
                 if b in inside]  # fmt: skip
        return [v for v in dict.fromkeys(used) if isinstance(v, Argument) or (
            isinstance(v, Instruction) and v.block not in inside and v not in private)]  # fmt: skip

    def _alone(self, address: Value, outer: Sequence[Value]) -> bool:
        """Whether the loop reaches the memory behind an address from outside through nothing but that address."""
        pointers = self.pointers
        mask = pointers.of(address) if address.type.is_ptr else 0
        if not mask or mask & (1 | overlap_mask(pointers.objects)):
            return False
        others = [*(v for v in outer if v is not address and v.type.is_ptr), *self.leads]
        others += [i for i in self.again.body if i.type.is_ptr and (i.opcode == "load" or i.is_call)]
        named = (o for i in self.again.body for o in i.operands if isinstance(o, GlobalVariable))
        return not any(pointers.of(other) & mask for other in [*others, *named])

    def _segment(self, name: str, state: ty.StructType, outer: Sequence[Value], *, counted: bool) -> Function:
        """The loop as a function, of its own blocks."""
        loop, before = self.loop, self.loop.preheader
        latch, header = loop.latches[0], loop.header
        carried, limit = header.phis, 1
        fn = internal(self.module, name, ty.I64, [ty.PTR, ty.I64, *(v.type for v in outer)])
        first, back, pause, done = Block("segment"), Block("back"), Block("pause"), Block("done")
        at = Builder(first)
        for variable in self.fn.entry.instructions:
            if variable in self.again.private:
                at.insert(variable)
        following = [phi.operands[phi.blocks.index(latch)] for phi in carried]
        for n, phi in enumerate(carried):
            value = self._regular(at, phi, at.load(phi.type, at.field(state, fn.args[0], n)))
            phi.operands[phi.blocks.index(before)] = value  # type: ignore[arg-type]
            phi.blocks = [first if b is before else back if b is latch else b for b in phi.blocks]
        at.br(header)
        ran = Instruction("phi", ty.I64, [ConstInt(ty.I64, 0)], blocks=[first])
        ran.block = header
        header.instructions.insert(0, ran)
        at = Builder(back)
        at.metadata = _debug_of(latch)
        after = at.add(ran, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        ran.operands.append(after)
        ran.blocks.append(back)
        at.cond_br(at.icmp("eq", after, fn.args[limit]), pause, header)
        end = Builder(pause)
        end.metadata = at.metadata
        for n, value in enumerate(following):
            end.store(value, end.field(state, fn.args[0], n))
        dead = copied_ends(loop, self.ends)
        exits = self._exits(fn, state, ran, end if counted else None)
        ways = [(after, pause), *exits]
        for _, block in ways:
            Builder(block).br(done)
        last = Builder(done)
        total = last.phi(ty.I64, ways)
        if not counted:
            last.store(total, last.field(state, fn.args[0], len(state.fields or ()) - 1))
        last.ret(total)
        if counted:
            latch.instructions.pop()
            Builder(latch).br(back)
        else:
            latch.terminator.blocks = [back if b is header else b for b in latch.terminator.blocks]
        fn.blocks = [first, *loop.blocks, back, pause, *(block for _, block in exits), done, *dead]
        for block in fn.blocks:
            block.function = fn
        replace_uses(fn, dict(zip(outer, fn.args[2:], strict=True)))
        return fn

    def _regular(self, at: Builder, phi: Instruction, value: Value) -> Value:
        """What is loaded of a number, with the power of two written out of which it is known to be a multiple, beside a
        constant: addresses that are made of it would lose their stride."""
        if phi not in self.ranges or phi.type is ty.I1:
            return value
        known = self.ranges[phi]
        stride = gcd(*(step for step, _ in known.terms)) if known.terms else 0
        shift = (stride & -stride).bit_length() - 1
        rest = ConstInt(phi.type, known.start % (1 << shift) if shift > 0 else 0)
        if shift <= 0:
            return value
        count = ConstInt(phi.type, shift)
        whole = at.binary("shl", at.binary("ashr", at.sub(value, rest, ()), count), count)
        return at.add(whole, rest, ())

    def _exits(
        self, fn: Function, state: ty.StructType, ran: Instruction, last: Builder | None
    ) -> list[tuple[Value, Block]]:
        """What leaves the loop is stored: at the end of a segment, or where the loop ends. The blocks that are made for
        that, with the number of iterations."""
        loop = self.loop
        found: list[tuple[Value, Block]] = []
        first = len(loop.header.phis) - 1  # `ran` is one of them now
        for block in loop.exiting:
            for number, target in enumerate(self.exits):
                if target not in block.terminator.blocks:
                    continue
                out = Block("out")
                at = last or Builder(out)
                place = first + sum(len(other.phis) for other in self.exits[:number])
                for n, phi in enumerate(target.phis):
                    at.store(phi.operands[phi.blocks.index(block)], at.field(state, fn.args[0], place + n))
                if last is not None:
                    continue
                at.store(ConstInt(ty.I64, number + 1), at.field(state, fn.args[0], len(state.fields or ()) - 2))
                found.append((at.add(ran, ConstInt(ty.I64, 1), ("nuw", "nsw")), out))
                block.terminator.blocks = [out if b is target else b for b in block.terminator.blocks]
        return found

    def _go_on(self, at: Builder, state: ty.StructType, block: Value, first: int, ends: int | None) -> None:
        """Behind the loop, what leaves it is loaded."""
        fn, loop = self.fn, self.loop
        ways = []
        for target in self.exits:
            way = Block("through")
            way.function = fn
            there = Builder(way)
            there.metadata = at.metadata
            for phi in target.phis:
                kept = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if not loop.contains(b)]
                kept.append((there.load(phi.type, there.field(state, block, first)), way))
                phi.operands, phi.blocks = [v for v, _ in kept], [b for _, b in kept]
                first += 1
            there.br(target)
            ways.append(way)
        if len(ways) == 1:
            at.br(ways[0])
        else:
            assert ends is not None
            number = at.load(ty.I64, at.field(state, block, ends))
            at.switch(number, ways[0], [(ConstInt(ty.I64, n + 1), way) for n, way in enumerate(ways) if n])
        gone = {*loop.blocks, *self.ends}
        while more := {s for b in fn.blocks if b not in gone for s in b.successors if s in gone}:
            gone -= more  # of what others come to as well, the loop has a copy
        fn.blocks = [*(b for b in fn.blocks if b not in gone), *ways]
        for other in fn.blocks:
            other.instructions = [i for i in other.instructions if i not in self.again.private and not (
                i.is_call and any(o in self.again.private for o in i.operands))]  # fmt: skip


def _variable(fn: Function, kind: ty.Type) -> Instruction:
    """A variable of a function."""
    return Builder(fn.entry, at=0).alloca(kind, align=16)


def _live_throughout(fn: Function, values: Sequence[Value]) -> None:
    """What says when the life of these variables begins and ends goes: another function uses them from now on."""
    for block in fn.blocks:
        block.instructions = [i for i in block.instructions if not (marks_lifetime(i) and i.args[-1] in values)]


def _debug_of(block: Block) -> dict[str, str]:
    rows = [i.metadata["dbg"] for i in block.instructions if "dbg" in i.metadata]
    return {"dbg": rows[-1]} if rows else {}
