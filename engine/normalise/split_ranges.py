"""Loops whose conditions hold in a part of their iterations alone are cut where the conditions change.

    loop k < n:                                  loop k < p:        ; p: where `c(k)` ends to hold
      if c(k): a, else: b                 ->       a
                                                 loop p <= k < n:
                                                   b

`c(k)` compares a counter with something invariant, for order or for equality (then the one iteration in which they are
equal stands between two loops), or does not change at all (one of the two loops is left out). So what a condition tells
apart is told by where control is: no iteration has a branch, nothing about ways is kept for the reverse sweep, and the
inner part is as fast as a loop that its author had cut by hand. Iterations, their order and what they compute stay.

Done for innermost loops with one exit, at the end of an iteration, that are counted before they start, in at most
`_PARTS` parts. A part that computes nothing is left out: its counters are set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.condition_changes import Change, Number, at_end, change_of, opened
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Constant, ConstInt, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE
from irgrad.engine.ir.rewrite import copied
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.preheader import always_runs

__all__ = ["split_ranges"]

_PARTS = 4  # of one loop
_LONGEST = 120  # instructions of a loop
_SHORTEST = 16  # iterations, where they are known


@dataclass(slots=True)
class _Part:
    """Iterations low to high, with what is known of the condition in them; once: it is just one; runs: whatever the
    numbers are."""

    low: Value
    high: Value
    known: bool
    once: bool = False
    runs: bool = False


def split_ranges(fn: Function) -> int:
    """Cut the loops of a function where their conditions change. Returns how often."""
    count = 0
    left: dict[Block, int] = {}
    asked: set[Block] = set()
    while (found := _next(fn, left, asked)) is not None:
        loop, change, trip = found
        room = left.get(loop.header, _PARTS)
        split = _Split(fn, loop, trip, change)
        headers = split.run()
        for header in headers:
            left[header] = room - split.added
            asked.discard(header)
        count += 1
    return count


def _next(fn: Function, left: dict[Block, int], asked: set[Block]) -> tuple[Loop, Change, TripCount] | None:
    loops = get(Loops, fn)
    forms: Induction | None = None
    for loop in loops.all:
        if loop.header in asked:
            continue
        asked.add(loop.header)
        room = left.get(loop.header, _PARTS) - 1
        if room <= 0 or loop.children or not _fits(loop, loops):
            continue
        conditions = list(_conditions(loop))
        if not conditions or not _closed(fn, loop):
            continue
        forms = forms or Induction(fn, loops=loops)
        trip = forms.trip_count(loop)
        if trip is None or not trip.certain or (trip.const is not None and trip.const + 1 < _SHORTEST):
            continue
        trip = TripCount(opened(trip.expr, forms))
        changes = [change for c in conditions if (change := change_of(c, loop, forms)) is not None]
        rows = sorted(((_extra(c, trip), n, c) for n, c in enumerate(changes)))
        if rows and rows[0][0] <= room:
            return loop, rows[0][2], trip
    return None


def _extra(change: Change, trip: TripCount) -> int:
    """How many parts more there are then."""
    return 1 if not change.point or at_end(change.at, trip) is not None else 2


def _fits(loop: Loop, loops: Loops) -> bool:
    if loop.preheader is None or loop.latch is None or loop.exiting != [loop.latch] or len(loop.exits) != 1:
        return False
    last = loop.latch.terminator
    if last.opcode != "br" or len(set(last.blocks)) != 2 or loops.cfg.preds(loop.exits[0]) != [loop.latch]:
        return False
    rows = [i for block in loop.blocks for i in block.instructions]
    plain = all(block.terminator.opcode in ("br", "switch") for block in loop.blocks)
    bundles = any(i.call is not None and i.call.bundles for i in rows)
    return plain and not bundles and len(rows) <= _LONGEST and any(isinstance(i.type, ty.FloatType) for i in rows)


def _conditions(loop: Loop) -> Iterator[Instruction]:
    """The comparisons that branches and choices of the loop hang on, but for that which ends it."""
    assert loop.latch is not None
    seen: set[Value] = set()
    for block in loop.blocks:
        last = block.terminator
        work = [o for i in block.instructions if i.opcode == "select" for o in i.operands[:1]]
        work += [last.operands[0]] if last.opcode == "br" and last.operands and block is not loop.latch else []
        while work:
            item = work.pop()
            if not isinstance(item, Instruction) or item in seen or item.type is not ty.I1:
                continue
            seen.add(item)
            if item.opcode == "icmp" and loop.contains(item.block):
                if item is not loop.latch.terminator.operands[0]:
                    yield item
            elif (item.opcode in BITWISE or item.opcode == "select") and loop.contains(item.block):
                work += item.operands
            elif not loop.contains(item.block):
                yield item


def _closed(fn: Function, loop: Loop) -> bool:
    """Whether what the loop computes leaves it through the phis of its exit alone."""
    exits = loop.exits[0].phis
    outside = uses_of(block for block in fn.blocks if not loop.contains(block))
    return all(all(user in exits for user in outside.get(i, ())) for block in loop.blocks for i in block.instructions)


# -- the parts --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Split:
    """A loop that is cut. added: parts more than there were; headers: of the loops that there are now."""

    fn: Function
    loop: Loop
    trip: TripCount
    change: Change
    added: int = 0
    headers: list[Block] = field(default_factory=list)

    def run(self) -> list[Block]:
        """Cut it. Returns the headers."""
        loop = self.loop
        assert loop.preheader is not None
        preheader, leave = loop.preheader, loop.exits[0]
        parts = self._parts(self._place(preheader))
        self.added = len(parts) - 1
        preheader.instructions.pop()
        now: dict[Instruction, Value] = {p: p.operands[p.blocks.index(preheader)] for p in loop.header.phis}
        outs: dict[Instruction, Value] = {phi: _nothing(phi.type) for phi in leave.phis}
        block, made = preheader, []
        for number, part in enumerate(parts):
            made.append(_Copy(self, part, whole=number == len(parts) - 1))
            block = made[-1].chain(block, now, outs)
        Builder(block).br(leave)
        for phi in leave.phis:
            phi.operands, phi.blocks = [outs[phi]], [block]
        _fold(self.fn, [block for copy in made for block in copy.blocks.values()])
        return self.headers

    def _place(self, preheader: Block) -> Builder:
        """Where the numbers of iterations are computed: as far in front as all is known that they hang on, so that
        what runs around the loop may be counted before it as well."""
        number, place, loop = self.change.at, preheader, self.loop.parent
        values = [*self.trip.uses, *TripCount(number.start).uses, *TripCount(number.bound).uses]
        known = [v for v in (*values, number.value) if isinstance(v, Instruction)]
        if not _divides(self.trip.expr):  # by what may be zero where the loop never runs
            while loop is not None and loop.preheader and not any(loop.contains(v.block) for v in known):
                place, loop = loop.preheader, loop.parent
            if loop is None and all(v.block is self.fn.entry for v in known):
                place = self.fn.entry
        return Builder(place, len(place.instructions) - 1)

    def _parts(self, at: Builder) -> list[_Part]:
        change, first = self.change, self.change.first
        zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
        last = self.trip.emit(at)
        count = at.add(last, one, ())
        end = at_end(change.at, self.trip) if change.point else None
        if end is True:
            return [_Part(zero, one, not first, once=True, runs=True), _Part(one, count, first)]
        if end is False:
            return [_Part(zero, last, first), _Part(last, count, not first, once=True, runs=True)]
        where = self._emit(change.at, at, count)
        if change.at.kind != "all" and not self._always():
            where = at.insert(Instruction("freeze", ty.I64, [where]))  # nothing is promised of what is never compared
        if not change.point:
            return [_Part(zero, where, first), _Part(where, count, not first)]
        behind = at.select(at.icmp("ult", where, count), at.add(where, one, ()), count)
        return [_Part(zero, where, first), _Part(where, behind, not first, once=True), _Part(behind, count, first)]

    def _always(self) -> bool:
        """Whether each iteration branches by the condition."""
        loops, block = get(Loops, self.fn), self.change.condition.block
        if block is None or block.terminator.operands[:1] != [self.change.condition]:
            return False
        return always_runs(block, self.loop, loops)

    def _emit(self, number: Number, at: Builder, count: Value) -> Value:
        """The number of an iteration, at most `count`."""
        zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
        if number.kind == "all":
            assert number.value is not None
            return at.select(at.insert(Instruction("freeze", ty.I1, [number.value])), count, zero)
        start, bound = TripCount(number.start).emit(at), TripCount(number.bound).emit(at)
        up = number.step > 0
        gap = at.sub(bound, start, ()) if up else at.sub(start, bound, ())
        step = ConstInt(ty.I64, abs(number.step))
        if number.kind == "equal":
            where = gap if step.value == 1 else at.binary("udiv", gap, step)
            meets = at.icmp("ult", where, count)
            if step.value != 1:
                whole = at.icmp("eq", at.mul(where, step, ()), gap)
                meets = at.select(whole, meets, ConstInt(ty.I1, 0))
            return at.select(meets, where, count)
        sign = "u" if number.unsigned else "s"
        holds = at.icmp(f"{sign}{'l' if up else 'g'}{'e' if number.closed else 't'}", start, bound)
        if number.closed:  # floor(gap / step) + 1
            whole = gap if step.value == 1 else at.binary("udiv", gap, step)
            most = at.sub(count, one, ())
            where = at.add(at.select(at.icmp("ult", whole, most), whole, most), one, ())
        else:  # gap / step rounded up: the gap is at least 1 where it is used
            whole = gap if step.value == 1 else at.add(at.binary("udiv", at.sub(gap, one, ()), step), one, ())
            where = at.select(at.icmp("ult", whole, count), whole, count)
        return at.select(holds, where, zero)


def _divides(expr: Expr) -> bool:
    return any(_divides(e) for e in expr[1:] if isinstance(e, tuple)) or (
        expr[0].startswith("udiv") and expr[2][0] != "const"
    )


def _nothing(kind: ty.Type) -> Constant:
    return ConstInt(kind, 0) if isinstance(kind, ty.IntType) else ConstZero(kind)


class _Copy:
    """The loop's blocks for one part: copies, or for the last part themselves."""

    def __init__(self, split: _Split, part: _Part, *, whole: bool) -> None:
        self.split, self.part, self.whole = split, part, whole
        blocks = split.loop.blocks
        known = ConstInt(ty.I1, int(part.known))
        self.values: dict[Value, Value] = {}
        self.blocks = {b: b if whole else Block(b.name) for b in blocks}
        for block in () if whole else blocks:
            for instr in block.instructions:
                new = copied(instr, instr.operands)
                new.blocks = [self.blocks.get(b, b) for b in instr.blocks]
                new.volatile, new.ordering, new.name = instr.volatile, instr.ordering, instr.name
                new.block = self.blocks[block]
                new.block.instructions.append(new)
                self.values[instr] = new
        replaced = {**self.values, split.change.condition: known}
        for block in self.blocks.values():
            for instr in block.instructions:
                instr.operands = [replaced.get(o, o) for o in instr.operands]

    def chain(self, block: Block, now: dict[Instruction, Value], outs: dict[Instruction, Value]) -> Block:
        """Put the part behind a block; `now` and `outs` are what header and exit have from then on. Returns where
        control goes on."""
        loop, part = self.split.loop, self.part
        assert loop.preheader is not None and loop.latch is not None
        header, latch = self.blocks[loop.header], self.blocks[loop.latch]
        enter, leave, behind = Block(), Block(), Block()
        at = Builder(block)
        if part.runs:
            at.br(enter)
        else:
            at.cond_br(at.icmp("ult", part.low, part.high), enter, behind)
        Builder(enter).br(header)
        ends: dict[Instruction, Value] = {p: p.operands[p.blocks.index(loop.latch)] for p in loop.header.phis}
        ends |= {phi: phi.operands[phi.blocks.index(loop.latch)] for phi in outs}
        ends = {phi: self.values.get(value, value) for phi, value in ends.items()}
        if part.once:
            gone = {self.values.get(phi, phi): now[phi] for phi in now}
            header.instructions = header.instructions[len(header.phis) :]
            for copy in self.blocks.values():
                for instr in copy.instructions:
                    instr.operands = [gone.get(o, o) for o in instr.operands]
            ends = {phi: gone.get(value, value) for phi, value in ends.items()}
            latch.instructions.pop()
            Builder(latch).br(leave)
        else:
            for phi, value in now.items():
                own = self.values.get(phi, phi)
                assert isinstance(own, Instruction)
                own.operands, own.blocks = [value, ends[phi]], [enter, latch]
            self._turn(header, latch, enter, leave)
            self.split.headers.append(header)
        at, on = Builder(leave), Builder(behind)
        for row in (now, outs):
            for phi in row:
                value = at.phi(phi.type, [(ends[phi], latch)])
                row[phi] = value if part.runs else on.phi(phi.type, [(row[phi], block), (value, leave)])
        at.br(behind)
        fn = self.split.fn
        added = [enter, leave, behind, *(() if self.whole else self.blocks.values())]
        place = fn.blocks.index(loop.header)
        fn.blocks[place:place] = added
        for one in added:
            one.function = fn
        return behind

    def _turn(self, header: Block, latch: Block, enter: Block, leave: Block) -> None:
        """When the part ends: as the loop did, or in an iteration of its own number."""
        last = latch.terminator
        if self.whole:
            last.blocks = [b if b is header else leave for b in last.blocks]
            return
        latch.instructions.pop()
        number = Builder(header, 0).phi(ty.I64, [(self.part.low, enter)])
        at = Builder(latch)
        at.metadata = {key: value for key, value in last.metadata.items() if key == "dbg"}
        after = at.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        at.cond_br(at.icmp("eq", after, self.part.high), leave, header).metadata = dict(last.metadata)
        number.operands.append(after)
        number.blocks.append(latch)


def _fold(fn: Function, blocks: list[Block]) -> None:
    """Leave out what a condition that is known now never reaches or chooses."""
    replaced: dict[Value, Value] = {}

    def final(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    changed = True
    while changed:
        changed = False
        for block in blocks:
            for instr in block.instructions:
                instr.operands = [final(o) for o in instr.operands]
                value = _folded(instr)
                if value is not None and instr not in replaced:
                    replaced[instr] = value
                    changed = True
    for block in blocks:
        last = block.terminator
        if last.opcode == "br" and last.operands and isinstance(last.operands[0], ConstInt):
            taken = last.blocks[0] if last.operands[0].value else last.blocks[1]
            for other in last.blocks:
                if other is not taken:
                    _forget(other, block)
            last.operands, last.blocks = [], [taken]
    reachable = get(Cfg, fn).reachable
    for block in fn.blocks:
        if block not in reachable:
            for after in dict.fromkeys(block.successors):
                if after in reachable:
                    _forget(after, block)
    fn.blocks = [block for block in fn.blocks if block in reachable]
    for block in blocks:
        for instr in block.instructions:
            if instr.opcode == "phi" and len(instr.operands) == 1:
                replaced[instr] = instr.operands[0]
    for instr in fn.instructions():
        instr.operands = [final(o) for o in instr.operands]
    for block in blocks:
        block.instructions = [i for i in block.instructions if i not in replaced]


def _folded(instr: Instruction) -> Value | None:
    """What an operation on truth values comes to."""
    op, rest = instr.opcode, instr.operands
    if op == "select" and isinstance(rest[0], ConstInt):
        return rest[1] if rest[0].value else rest[2]
    if op not in BITWISE or instr.type is not ty.I1:
        return None
    for this, other in ((rest[0], rest[1]), (rest[1], rest[0])):
        if isinstance(this, ConstInt):
            if op == "xor":
                return other if not this.value else None
            return other if bool(this.value) is (op == "and") else this
    return None


def _forget(block: Block, source: Block) -> None:
    """Control does not come to a block from there any longer."""
    for phi in block.phis:
        if source in phi.blocks:
            at = phi.blocks.index(source)
            del phi.operands[at], phi.blocks[at]
