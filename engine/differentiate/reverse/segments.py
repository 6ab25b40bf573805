"""The reverse derivative of a loop in segments: states are kept, and no tape of more than one segment.

    augmented   the loop, which saves its state from time to time; the tape is the list of the states
    reverse     segment by segment, the last one first: the memory as the state before it says, iterations up to the
                segment (which may save states on the way), then both sweeps of the segment at once

Where the number of states is bounded they are placed as binomial checkpointing does (Griewank and Walther, Algorithm
799: revolve, ACM TOMS 26, 2000), for the iterations that are left at each point; of a loop of which it is not known how
long it runs, each second one is dropped when there are too many (Heuveline and Walther, Online checkpointing, 2006).
With a bound in bytes the number of states follows from their size, and the length of a segment from the tape that the
first one needed. When the reverse sweep is through, the memory is what the loop had left.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.evolution.row_regions import DEEPEST
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.shadow.carried import add
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.derived_functions import combined_function
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.normalise.segments import ENDLESS, ROW, Segments

__all__ = ["Half", "emit_segments"]

_BOX = ty.struct((ty.PTR, ty.I64, ty.PTR, ty.I64, ty.I64, ty.I64, ty.I64, ty.PTR))
"""What the tape of a loop is: the last state, iterations, states to use again, how many more there may be, iterations
of a segment, by which exit the loop was left, bytes of all states, pieces of memory behind addresses in tables."""
_TOP, _RAN, _SPARE, _FREE, _UNIT, _EXIT, _HELD, _LIST = range(8)
_PIECE = ty.struct((ty.PTR, ty.I64))
"""One of such a list, which begins with how many there are and the bytes of all."""
_CACHE = 1 << 20
"""The tape of a segment is no longer than this where it may be as long as it likes, as it is written and read at once;
where a state alone is longer, no cache holds either, and longer segments run fewer iterations again (heat equation of
512^2 cells: half of the time)."""
_COPY = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))


def emit_segments(unit: Unit, made: Segments, abi: Abi, augmented: Function, reverse: Function) -> None:
    """Fill the two halves of the derivative of `f.segments`."""
    _Augmented(unit, made, abi, augmented).write()
    _Reversed(unit, made, abi, reverse).write()


def _number(value: int) -> ConstInt:
    return ConstInt(ty.I64, value)


class Half:
    """What halves of such derivatives have in common: arguments, states, running segments."""

    def __init__(self, unit: Unit, made: Segments, abi: Abi, target: Function) -> None:
        self.unit, self.made, self.abi, self.target = unit, made, abi, target
        new = iter(target.args)
        self.args: list[Value] = []
        self.shadows: dict[int, Value] = {}
        for i in range(len(made.loop.args)):
            self.args.append(next(new))
            if abi.shadow[i]:
                self.shadows[i] = next(new)
        self.last: Value = next(new)  # the arena, or the tape
        self.b = Builder(self.block("entry"))
        self.held: Instruction | None = None  # bytes of all states
        self.sums: list[Instruction | None] = []  # adjoints of the arguments
        self.node = ty.struct((ty.PTR, ty.I64, *([ty.PTR] * (1 + len(made.saved) + bool(made.rows)))))
        self.list: Value | None = None
        state = self.args[0], _number(ty.size_of(made.state))
        self.pieces = [state, *((self.args[at], self.args[carried]) for at, _, carried in made.saved)]
        self.whole = [state, *((self.args[at], self.args[size]) for at, size, _ in made.saved)]

    @property
    def total(self) -> Value:
        return self.args[1]

    def listed(self, pieces: Value) -> None:
        """A list of pieces is saved as well."""
        self.list = pieces
        row = pieces, self.b.load(ty.I64, self.b.field(_PIECE, pieces, 1))
        self.pieces.append(row)
        self.whole.append(row)

    def block(self, name: str) -> Block:
        """A new block of the function."""
        made = Block(name)
        made.function = self.target
        self.target.blocks.append(made)
        return made

    def enter(self, block: Block) -> None:
        """Go on writing there."""
        self.b = Builder(block)

    def variable(self, start: Value) -> Instruction:
        """A variable of the function, of the entry block."""
        made = Builder(self.target.entry, at=0).alloca(start.type)
        self.b.store(start, made)
        return made

    def read(self, variable: Instruction) -> Value:
        """The value of a variable."""
        assert variable.elem is not None
        return self.b.load(variable.elem, variable)

    def least(self, x: Value, y: Value) -> Value:
        """The smaller of two numbers without signs."""
        return self.b.select(self.b.icmp("ult", x, y), x, y)

    def runtime(self, name: str, *args: Value) -> Instruction:
        """Call a function of the runtime."""
        return self.b.call(self.unit.runtime(name), list(args))

    # -- states --------------------------------------------------------------------------------------------------------

    def save(self, arena: Value, before: Value, done: Value, spare: Instruction) -> Value:
        """A new state, of the memory as it is; or one of the spare ones, filled anew."""
        return self._fill(self._take(arena, spare), self.pieces, before, done)

    def save_all(self, arena: Value) -> Value:
        """All of the memory, with what no iteration hands on to the next."""
        return self._fill(self._make(arena, self.whole), self.whole, zero_of(ty.PTR), _number(0))

    def _fill(self, node: Value, pieces: Sequence[tuple[Value, Value]], before: Value, done: Value) -> Value:
        b = self.b
        b.store(before, b.field(self.node, node, 0))
        b.store(done, b.field(self.node, node, 1))
        for n, (address, size) in enumerate(pieces):
            self._copy(b.load(ty.PTR, b.field(self.node, node, 2 + n)), address, size, state=n == 0)
        return node

    def _take(self, arena: Value, spare: Instruction) -> Value:
        found = self.read(spare)
        make, use, go_on = self.block("make"), self.block("use"), self.block("filled")
        self.b.cond_br(self.b.icmp("eq", found, zero_of(ty.PTR)), make, use)
        self.enter(use)
        self.b.store(self.b.load(ty.PTR, found), spare)
        self.b.br(go_on)
        self.enter(make)
        new = self._make(arena, self.pieces)
        last = self.b.block
        self.b.br(go_on)
        self.enter(go_on)
        return self.b.phi(ty.PTR, [(found, use), (new, last)])

    def _make(self, arena: Value, pieces: Sequence[tuple[Value, Value]]) -> Value:
        node = self.runtime("irgrad.tape.alloc", arena, _number(ty.size_of(self.node)))
        assert self.held is not None
        total = self.b.add(self.read(self.held), _number(ty.size_of(self.node)))
        for _, size in pieces:
            total = self.b.add(total, size)
        self.b.store(total, self.held)
        for n, (_, size) in enumerate(pieces):
            room = self.runtime("irgrad.tape.alloc", arena, size)
            self.b.store(room, self.b.field(self.node, node, 2 + n))
        return node

    def state_bytes(self) -> Value:
        """The bytes of a state."""
        each: Value = _number(ty.size_of(self.node))
        for _, size in self.pieces:
            each = self.b.add(each, size)
        return each

    def restore(self, node: Value, pieces: Sequence[tuple[Value, Value]] | None = None) -> None:
        """The memory as a state says, or these pieces as they were."""
        for n, (address, size) in enumerate(self.pieces if pieces is None else pieces):
            self._copy(address, self.b.load(ty.PTR, self.b.field(self.node, node, 2 + n)), size, state=n == 0)

    def _copy(self, target: Value, source: Value, size: Value, *, state: bool) -> None:
        if state:  # each field as what it is, which LLVM would make integers of
            kinds = self.made.state.fields or ()
            values = [self.b.load(kind, self.b.field(self.made.state, source, n)) for n, kind in enumerate(kinds)]
            for n, value in enumerate(values):
                self.b.store(value, self.b.field(self.made.state, target, n))
        elif self.list is not None and self.list in (target, source):
            self._copy_list(source if target is self.list else target, back=target is self.list)
        else:
            self._move(target, source, size)

    def _move(self, target: Value, source: Value, size: Value) -> None:
        copy = self.unit.declare("llvm.memcpy.p0.p0.i64", _COPY)
        self.b.call(copy, [target, source, size, ConstInt(ty.I1, 0)])

    def _copy_list(self, room: Value, *, back: bool) -> None:
        """The pieces of the list into one room, one behind the other, or back."""
        assert self.list is not None
        number, place = self.variable(_number(0)), self.variable(room)
        look, one, go_on = (self.block(name) for name in ("pieces", "piece", "moved"))
        self.b.br(look)
        self.enter(look)
        done = self.read(number)
        self.b.cond_br(self.b.icmp("ult", done, self.b.load(ty.I64, self.list)), one, go_on)
        self.enter(one)
        after = self.b.add(done, _number(1))
        piece = self.b.gep(_PIECE, self.list, after)
        address, size = (self.b.load(kind, self.b.field(_PIECE, piece, n)) for n, kind in enumerate((ty.PTR, ty.I64)))
        here = self.read(place)
        self._move(*((address, here) if back else (here, address)), size)
        self.b.store(self.b.gep(ty.I8, here, size), place)
        self.b.store(after, number)
        self.b.br(look)
        self.enter(go_on)

    def place(self, node: Value) -> Value:
        """How many iterations were done when a state was saved."""
        return self.b.load(ty.I64, self.b.field(self.node, node, 1))

    def field(self, number: int) -> Value:
        """A number in the state."""
        return self.b.load(ty.I64, self.b.field(self.made.state, self.args[0], number))

    # -- segments ------------------------------------------------------------------------------------------------------

    def run(self, iterations: Value) -> Value:
        """Run at most so many iterations; how many it were."""
        step = self.made.step
        return self.b.call(step, [self.args[0], iterations, *self.args[2 : len(step.args)]])

    def more(self, done: Instruction) -> Value:
        """Whether the loop goes on after so many iterations."""
        ends = self.made.ends
        if ends is None:
            return self.b.icmp("ult", self.read(done), self.total)
        return self.b.icmp("eq", self.field(ends), _number(0))

    def both_sweeps(self, count: Value) -> None:
        """Run so many iterations, and their reverse sweep."""
        step = self.made.step
        self.both_sweeps_of(step, [self.args[0], count, *self.args[2 : len(step.args)]])

    def both_sweeps_of(self, step: Function, values: Sequence[Value]) -> Instruction:
        """Call such a function, and its reverse sweep."""
        unit, made = self.unit, self.made
        abi = unit.abis[step]
        args: list[Value] = []
        for i, value in enumerate(values):
            args.append(value)
            if abi.shadow[i]:
                args.append(self.shadows[i])
        result = self.b.call(combined_function(unit, step), args)
        for n, i in enumerate(i for i, active in enumerate(abi.adjoint) if active):
            total, amount = self.sums[i], self.b.extractvalue(result, n)
            assert total is not None
            self.b.store(add(unit, self.b, made.loop.args[i], self.read(total), amount), total)
        return result

    def begin_sums(self) -> None:
        """Variables for the adjoints of the arguments."""
        self.sums = [self.variable(zero_of(self.unit.wide(arg.type))) if self.abi.adjoint[i] else None
                     for i, arg in enumerate(self.made.loop.args)]  # fmt: skip

    def summed(self) -> list[Value]:
        """The adjoints of the arguments."""
        return [self.read(total) for total in self.sums if total is not None]

    def return_all(self, results: Sequence[Value]) -> None:
        """The end of the function, which returns these."""
        self.b.ret(self.b.aggregate(self.target.ftype.ret, results) if results else None)

    def follow(self) -> None:
        """The shadows of the addresses in the state: those of the memory that they lead to."""
        state = self.shadows.get(0)
        if state is None:
            return
        for n, leads in self.made.pointers.items():
            if any(at in self.shadows for at, _ in leads):
                offset = ty.field_offsets(self.made.state)[n]
                found = self.b.load(ty.PTR, self.b.gep(ty.I8, self.args[0], offset))
                place = self.unit.memory.moved(self.b, state, offset)
                self.unit.memory.store(self.b, ty.PTR, self._shadow(found, leads), place)

    def _shadow(self, address: Value, leads: Sequence[tuple[int, int]]) -> Value:
        """The shadow of an address into one of these pieces of memory; an address may be that of their end."""
        b = self.b
        at = b.cast("ptrtoint", address, ty.I64)
        result: Value = zero_of(self.unit.wide(ty.PTR))
        rows: list[tuple[Value, Value, Value]] = []
        for base, size in leads:
            distance = b.sub(at, b.cast("ptrtoint", self.args[base], ty.I64), ())
            if base in self.shadows:
                rows.append((distance, self.args[size], self.unit.memory.advanced(b, self.shadows[base], distance)))
        for far, end, shadow in rows:  # ends first: memory that begins there is what is meant
            result = b.select(b.icmp("eq", far, end), shadow, result)
        for far, end, shadow in rows:
            result = b.select(b.icmp("ult", far, end), shadow, result)
        return result


class _Augmented(Half):
    """The primal sweep of the loop."""

    def write(self) -> None:
        arena = self.last
        box = self.runtime("irgrad.tape.alloc", arena, _number(ty.size_of(_BOX)))
        listed = self._list(arena)
        states = self._states()
        free, unit = self.variable(states), self.variable(self._unit(states))
        done, top = self.variable(_number(0)), self.variable(zero_of(ty.PTR))
        spare, self.held = self.variable(zero_of(ty.PTR)), self.variable(listed)
        turn, out = self.block("turn"), self.block("out")
        self.b.br(turn)
        self.enter(turn)
        node = self.save(arena, self.read(top), self.read(done), spare)
        self.b.store(node, top)
        self.b.store(self.b.sub(self.read(free), _number(1)), free)
        ahead = self._ahead(free, unit, done, top, spare)
        ran = self.run(ahead)
        self.b.store(self.b.add(self.read(done), ran), done)
        self.b.cond_br(self.more(done), turn, out)
        self.enter(out)
        for n, variable in ((_TOP, top), (_RAN, done), (_SPARE, spare), (_FREE, free), (_UNIT, unit),
                            (_HELD, self.held)):  # fmt: skip
            self.b.store(self.read(variable), self.b.field(_BOX, box, n))
        if self.made.ends is not None:
            self.b.store(self.field(self.made.ends), self.b.field(_BOX, box, _EXIT))
        if self.list is not None:
            self.b.store(self.list, self.b.field(_BOX, box, _LIST))
        self.follow()
        b = self.b
        b.ret(b.aggregate(self.target.ftype.ret, [box]))

    def _list(self, arena: Value) -> Value:
        """The list of what lies behind addresses in tables; its own bytes."""
        if not self.made.rows:
            return _number(0)
        b = self.b
        most: Value = _number(1)  # the head of the list
        rows = [self.args[first : first + ROW] for first in self.made.rows]
        for row in rows:
            many = row[0]
            for count in row[2 : 2 + 4 * DEEPEST : 4]:
                many = b.mul(many, b.add(count, _number(1), ()), ())
            most = b.add(most, many, ())
        size = b.mul(most, _number(ty.size_of(_PIECE)), ())
        pieces = self.runtime("irgrad.tape.alloc", arena, size)
        b.store(_number(0), pieces)
        for row in rows:
            self.runtime("irgrad.segments.note", pieces, *row)
        self.runtime("irgrad.segments.join", pieces)
        self.listed(pieces)
        return size

    def _states(self) -> Value:
        """How many states there may be at once, at least two."""
        choice = self.made.choice
        if not choice.bytes:
            return _number(choice.states or ENDLESS)
        count = self.b.binary("udiv", _number(choice.bytes // 2), self.state_bytes())
        return self.b.select(self.b.icmp("ult", count, _number(2)), _number(2), count)

    def _unit(self, states: Value) -> Value:
        """Iterations from one state to the next. Where only their memory is bounded: half the root of their number, as
        if the tape of an iteration were four states, or as many as there may be states for."""
        choice, b = self.made.choice, self.b
        if not choice.bytes or self.made.ends is not None:
            return _number(max(choice.unit, 1))
        root = self.unit.declare("llvm.sqrt.f64", ty.function(ty.F64, (ty.F64,)))
        half = b.call(root, [b.cast("uitofp", b.binary("lshr", self.total, _number(2)), ty.F64)])
        some = b.cast("fptoui", half, ty.I64)
        least = b.add(b.binary("udiv", self.total, states), _number(1))
        return b.select(b.icmp("ugt", some, least), some, least)

    def _ahead(
        self, free: Instruction, unit: Instruction, done: Instruction, top: Instruction, spare: Instruction
    ) -> Value:
        """Iterations up to the next state."""
        choice = self.made.choice
        if self.made.ends is None:
            return iterations_ahead(self, self.read(done), self.total, self.read(unit), self.read(free))
        if choice.states or choice.bytes:  # each second one is dropped when there are too many
            full, go_on = self.block("full"), self.block("room")
            self.b.cond_br(self.b.icmp("eq", self.read(free), _number(0)), full, go_on)
            self.enter(full)
            self.b.store(self.b.mul(self.read(unit), _number(2)), unit)
            self.runtime("irgrad.segments.thin", top, self.read(unit), spare, free)
            self.b.br(go_on)
            self.enter(go_on)
        # The next state is a whole number of units from the start, whichever were dropped.
        return self.b.sub(self.read(unit), self.b.binary("urem", self.read(done), self.read(unit)))

class _Reversed(Half):
    """The reverse sweep of the loop."""

    def write(self) -> None:
        made = self.made
        b, box = self.b, self.last
        arena = self.runtime("irgrad.tape.acquire")
        if made.rows:
            self.listed(b.load(ty.PTR, b.field(_BOX, box, _LIST)))
        top, high, spare, free, length = (
            self.variable(b.load(kind, b.field(_BOX, box, n))) for n, kind in enumerate((_BOX.fields or ())[:_EXIT])
        )
        if made.ends is not None or made.choice.bytes:  # how far states are apart is another matter
            self.b.store(_number(max(made.choice.unit, 1)), length)
        low = self.variable(_number(0))
        self.held = self.variable(b.load(ty.I64, b.field(_BOX, box, _HELD)))
        self.total_ran = self.read(high)
        self.exit = b.load(ty.I64, b.field(_BOX, box, _EXIT)) if made.ends is not None else None
        self.begin_sums()
        final = self.save_all(arena)
        head, last = self.block("head"), self.block("last")
        self.b.br(head)
        self.enter(head)
        node, end = self.read(top), self.read(high)
        start = self.place(node)
        short = self.b.icmp("ult", self.b.sub(end, start), self.read(length))
        self.b.store(self.b.select(short, start, self.b.sub(end, self.read(length))), low)
        self.restore(node)
        self._advance(arena, start, end, low, length, top, spare, free)
        self.follow()
        self._segment(low, end, length)
        self.b.store(self.read(low), high)
        self._drop(low, top, spare, free)
        self.b.cond_br(self.b.icmp("eq", self.read(low), _number(0)), last, head)
        self.enter(last)
        self.restore(final, self.whole)
        self.runtime("irgrad.tape.finish", arena)
        self.return_all(self.summed())

    def _advance(
        self, arena: Value, start: Value, end: Value, low: Instruction, length: Instruction, top: Instruction,
        spare: Instruction, free: Instruction,
    ) -> None:  # fmt: skip
        """Run up to the segment; states on the way while there may be more."""
        at = self.variable(start)
        look, go, keep, ready = (self.block(name) for name in ("look", "go", "keep", "ready"))
        self.b.br(look)
        self.enter(look)
        self.b.cond_br(self.b.icmp("ult", self.read(at), self.read(low)), go, ready)
        self.enter(go)
        here = self.read(at)
        ahead = iterations_ahead(self, here, end, self.read(length), self.read(free))
        ahead = self.least(ahead, self.b.sub(self.read(low), here))
        self.run(ahead)
        self.b.store(self.b.add(here, ahead), at)
        self.b.cond_br(self.b.icmp("ult", self.read(at), self.read(low)), keep, ready)
        self.enter(keep)
        node = self.save(arena, self.read(top), self.read(at), spare)
        self.b.store(node, top)
        self.b.store(self.b.sub(self.read(free), _number(1)), free)
        self.b.br(look)
        self.enter(ready)

    def _segment(self, low: Instruction, end: Value, length: Instruction) -> None:
        """Both sweeps of a segment. Its tape counts with the states that are there meanwhile."""
        assert self.held is not None
        peak = self.runtime("irgrad.tape.peak", _number(0))
        count = self.b.sub(end, self.read(low))
        self.both_sweeps(count)
        self._same_way(count, end)
        used = self.runtime("irgrad.tape.peak", _number(0))
        both = self.b.add(used, self.read(self.held))
        self.runtime("irgrad.tape.peak", self.b.select(self.b.icmp("ugt", peak, both), peak, both))
        if not self.made.choice.bytes:
            return
        each = self.b.add(self.b.binary("udiv", used, count), _number(1))
        half = self.made.choice.bytes // 2
        large = self.b.icmp("ugt", self.state_bytes(), _number(_CACHE))
        fits = self.b.binary("udiv", self.b.select(large, _number(half), _number(min(half, _CACHE))), each)
        self.b.store(self.b.select(self.b.icmp("eq", fits, _number(0)), _number(1), fits), length)

    def _same_way(self, count: Value, end: Value) -> None:
        """A loop that ends by what it computes has to end where it did: else the call fails, with the place."""
        ends = self.made.ends
        if ends is None or self.exit is None:
            return
        b = self.b
        wanted = b.select(b.icmp("eq", end, self.total_ran), self.exit, _number(0))
        other = b.icmp("ne", self.field(ends), wanted)
        fewer = b.icmp("ne", self.field(ends + 1), count)
        text = self.unit.text_constant(self.made.place)
        self.runtime("irgrad.tape.differs", b.binary("or", other, fewer), text)

    def _drop(self, low: Instruction, top: Instruction, spare: Instruction, free: Instruction) -> None:
        """The state at the begin of the segment is needed no more."""
        node = self.read(top)
        gone, go_on = self.block("gone"), self.block("left")
        self.b.cond_br(self.b.icmp("eq", self.place(node), self.read(low)), gone, go_on)
        self.enter(gone)
        self.b.store(self.b.load(ty.PTR, node), top)
        self.b.store(self.read(spare), node)
        self.b.store(node, spare)
        self.b.store(self.b.add(self.read(free), _number(1)), free)
        self.b.br(go_on)
        self.enter(go_on)


def iterations_ahead(half: Half, done: Value, end: Value, unit: Value, free: Value) -> Value:
    """How many iterations to run before the next state, where so many more states may be kept up to `end`."""
    b = half.b
    rest = b.sub(end, done)
    up = b.sub(b.add(rest, unit), _number(1))
    units = half.runtime("irgrad.segments.ahead", b.binary("udiv", up, unit), free)
    return half.least(b.mul(units, unit), rest)

