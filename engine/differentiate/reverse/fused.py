"""The reverse derivative of a loop whose cotangents are known before it (see `normalise/known_cotangents.py`).

    augmented   one iteration at a time, both its sweeps; the tape is the adjoints of numbers from outside
    reverse     hands those on, and the adjoint of a sum behind the loop to the sum before it

A sum has the same cotangent in all iterations: that of what goes out of the loop in the last one, of what goes on in
the others. All run at once, with a tape of all, where memory that they write turns out not to be each one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import add, zero_of
from irgrad.engine.differentiate.reverse.reserved_tape import reserve_before
from irgrad.engine.differentiate.reverse.segments import Half
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.derived_functions import combined_function
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.normalise.known_cotangents import in_precision
from irgrad.engine.normalise.one_iteration import reads_others
from irgrad.engine.normalise.segments import Segments

__all__ = ["emit_fused"]

_Known: TypeAlias = Mapping[int, Mapping[int, Value]]
"""Of each sum, by fields of the state, the cotangents of what takes it behind the loop."""


def emit_fused(unit: Unit, made: Segments, abi: Abi, augmented: Function, reverse: Function) -> None:
    """Fill the two halves of the derivative of `f.segments`."""
    both = _Augmented(unit, made, abi, augmented)
    unit.queue.append(both.reserve)  # when what is put into the queue on the way is through
    both.write()
    _Last(unit, made, abi, reverse).write()


def _number(value: int) -> ConstInt:
    return ConstInt(ty.I64, value)


class _Fused(Half):
    @property
    def box(self) -> ty.StructType:
        """What the tape is: the adjoints of the arguments."""
        kinds = [self.unit.wide(arg.type) for i, arg in enumerate(self.made.loop.args) if self.abi.adjoint[i]]
        return ty.struct((ty.I64, *kinds))

    def _place(self, n: int) -> tuple[ty.Type, Value]:
        """The type of a field of the state, and where its shadow is."""
        fields, offsets = self.made.state.fields or (), ty.field_offsets(self.made.state)
        return fields[n], self.unit.memory.moved(self.b, self.shadows[0], offsets[n])

    def put(self, n: int, adjoint: Value | None) -> None:
        """The adjoint of a field of the state, None: zero."""
        kind, place = self._place(n)
        self.unit.memory.store(self.b, kind, zero_of(self.unit.wide(kind)) if adjoint is None else adjoint, place)

    def take(self, n: int) -> Value:
        """That adjoint, which is zero from then on."""
        kind, place = self._place(n)
        found = self.unit.memory.load(self.b, kind, place)
        self.put(n, None)
        return found


class _Last(_Fused):
    """The reverse sweep: nothing is left of it but to hand on what was found."""

    def write(self) -> None:
        for n, leaving in self.made.sums.items():
            total = self.take(n)
            for taken in leaving:
                total = add(self.b, total, self.take(taken))
            self.put(n, total)
        kinds = (self.box.fields or ())[1:]
        self.return_all([self.b.load(kind, self.b.field(self.box, self.last, n + 1)) for n, kind in enumerate(kinds)])


class _Augmented(_Fused):
    """Both sweeps."""

    called: tuple[Instruction, Value, Value, Builder]  # an iteration, its arena and its state; before the loop

    def reserve(self) -> None:
        """Reserve the tape of an iteration before the loop, as far as its bytes are known there."""
        call, arena, state, at = self.called
        assert self.made.one is not None
        reserve_before(combined_function(self.unit, self.made.one), call, state, arena, self.last, at)

    def write(self) -> None:
        made, arena = self.made, self.last
        box = self.runtime("irgrad.tape.alloc", arena, _number(ty.size_of(self.box)))
        self.begin_sums()
        known = {n: {taken: self._cotangent(n, ways) for taken, ways in leaving.items()}
                 for n, leaving in made.sums.items()}  # fmt: skip
        out = self.block("out")
        if made.step is not made.one:
            whole, each = self.block("whole"), self.block("each")
            carried = [self.args[carried] for _, size, carried in made.saved if carried != size]
            self.b.cond_br(reads_others(self.b, carried), whole, each)
            self.enter(whole)
            self._hand_in(known, ConstInt(ty.I1, 1))
            self.follow()
            self.both_sweeps(self.total)
            self.b.br(out)
            self.enter(each)
        self._one_by_one(known, out)
        self.enter(out)
        for n in [*made.sums, *(taken for leaving in made.sums.values() for taken in leaving)]:
            self.put(n, None)
        for n, amount in enumerate(self.summed()):
            self.b.store(amount, self.b.field(self.box, box, n + 1))
        self.return_all([box])

    def _one_by_one(self, known: _Known, out: Block) -> None:
        """One iteration after the other, each with its reverse sweep. The state is a variable meanwhile, which LLVM
        takes apart into numbers."""
        one, unit = self.made.one, self.unit
        assert one is not None
        state, shadow = self.args[0], self.shadows.get(0)
        arena = self.runtime("irgrad.tape.acquire")
        self._begin(state, shadow)
        done, turn, through = self.variable(_number(0)), self.block("turn"), self.block("through")
        before = self.b.block
        self.b.br(turn)
        self.enter(turn)
        self.b.flags = unit.flags
        after = self.b.add(self.read(done), _number(1))
        self._hand_in(known, self.b.icmp("eq", after, self.total))
        self.follow()
        own = self.args[0]
        call = self.both_sweeps_of(one, [own, _number(1), *self.args[2 : len(one.args) - 1], arena])
        self.called = call, arena, own, Builder(before, at=len(before.instructions) - 1)
        self.b.store(after, done)
        self.b.cond_br(self.more(done), turn, through)
        self.enter(through)
        self.runtime("irgrad.tape.finish", arena)
        for n, kind in enumerate(self.made.state.fields or ()):
            value = self.b.load(kind, self.b.field(self.made.state, self.args[0], n))
            self.b.store(value, self.b.field(self.made.state, state, n))
        self.args[0] = state
        if shadow is not None:
            self.shadows[0] = shadow
            self.follow()
        self.b.br(out)

    def _begin(self, state: Value, shadow: Value | None) -> None:
        """A state of its own, as that is."""
        top, kind, unit = Builder(self.target.entry, at=0), self.made.state, self.unit
        own = top.alloca(kind, align=16)
        self.args[0] = own
        for n, field in enumerate(kind.fields or ()):
            self.b.store(self.b.load(field, self.b.field(kind, state, n)), self.b.field(kind, own, n))
        if shadow is None:
            return
        self.shadows[0] = unit.memory.allocate(top, own, [ConstInt(ty.I32, 1)])
        for n, field in enumerate(kind.fields or ()):
            if field.is_ptr or field.is_float:
                there = unit.memory.load(self.b, field, unit.memory.moved(self.b, shadow, ty.field_offsets(kind)[n]))
                unit.memory.store(self.b, field, there, self._place(n)[1])

    def _cotangent(self, n: int, ways: Sequence[int]) -> Value:
        """Of what takes a sum behind the loop, from the shadow of the memory that it goes into."""
        unit, b, kind = self.unit, self.b, self._place(n)[0]
        total: Value = zero_of(unit.wide(kind))
        for way in ways:
            base, address, factor = self.args[way : way + 3]
            if way in self.shadows:
                offset = b.sub(b.cast("ptrtoint", address, ty.I64), b.cast("ptrtoint", base, ty.I64), ())
                there = unit.memory.load(b, factor.type, unit.memory.advanced(b, self.shadows[way], offset))
                amount = b.binary("fmul", there, lanes.splat(b, factor, unit.width))
                total = add(b, total, in_precision(b, amount, total.type))
        return total

    def _hand_in(self, known: _Known, last: Value) -> None:
        """The adjoints of the state behind iterations, or the last ones. Where it is not known which are the last, one
        of the two is not read; where sums leave the loop as they go on, there is no difference."""
        always = self.made.ends is not None or (self.made.goes_on and not isinstance(last, ConstInt))
        for n, leaving in known.items():
            total: Value = zero_of(self.unit.wide(self._place(n)[0]))
            for taken, cotangent in leaving.items():
                if not self.made.goes_on or isinstance(last, ConstInt):
                    self.put(taken, cotangent if always else self._where(last, cotangent))
                total = add(self.b, total, cotangent)
            self.put(n, total if always else self._where(self.b.binary("xor", last, ConstInt(ty.I1, 1)), total))

    def _where(self, condition: Value, cotangent: Value) -> Value:
        return self.b.select(condition, cotangent, zero_of(cotangent.type))
