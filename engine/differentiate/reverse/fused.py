"""The reverse derivative of a loop whose cotangents are known before it (see `normalise/known_cotangents.py`).

    augmented   some iterations at a time, both their sweeps; the tape is the adjoints of numbers from outside
    reverse     hands those on, and the adjoint of a sum behind the loop to the sum before it

A sum has the same cotangent in all iterations: that of what goes out of the loop in the last segment, of what goes on
in the others. So many iterations run at a time that their tape stays in the cache; all, where memory that they write
turns out not to be each one's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import add, zero_of
from irgrad.engine.differentiate.reverse.segments import Half
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Value
from irgrad.engine.normalise.known_cotangents import in_precision
from irgrad.engine.normalise.segments import ENDLESS, Segments

__all__ = ["emit_fused"]

_FIRST = 16
"""Iterations of the first segment, whose tape is measured."""
_CACHE = 1 << 15
"""Bytes of the tape of others: with what they read and add to, it stays in the caches nearest to the processor."""
_MOST = 1 << 12
"""Iterations of a segment at most."""


def emit_fused(unit: Unit, made: Segments, abi: Abi, augmented: Function, reverse: Function) -> None:
    """Fill the two halves of the derivative of `f.segments`."""
    _Augmented(unit, made, abi, augmented).write()
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

    def write(self) -> None:
        made, arena = self.made, self.last
        box = self.runtime("irgrad.tape.alloc", arena, _number(ty.size_of(self.box)))
        self.begin_sums()
        known = {n: {taken: self._cotangent(n, ways) for taken, ways in leaving.items()}
                 for n, leaving in made.sums.items()}  # fmt: skip
        done, length = self.variable(_number(0)), self.variable(self._length())
        turn, out = self.block("turn"), self.block("out")
        self.b.br(turn)
        self.enter(turn)
        count, before = self.read(length), self.read(done)
        if made.ends is None:
            count = self.least(count, self.b.sub(self.total, before))
        self._hand_in(known, self.b.icmp("eq", self.b.add(before, count, ()), self.total))
        self.follow()
        self.b.store(self.b.add(before, self._segment(count, length)), done)
        self.b.cond_br(self.more(done), turn, out)
        self.enter(out)
        for n in [*made.sums, *(taken for leaving in made.sums.values() for taken in leaving)]:
            self.put(n, None)
        for n, amount in enumerate(self.summed()):
            self.b.store(amount, self.b.field(self.box, box, n + 1))
        self.return_all([box])

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

    def _length(self) -> Value:
        """Iterations of the first segment: all, where memory goes from one to another."""
        first: Value = _number(_FIRST)
        for _, _, carried in self.made.saved:
            own = self.b.icmp("eq", self.args[carried], _number(0))
            first = self.b.select(own, first, _number(ENDLESS))
        return first

    def _hand_in(self, known: dict[int, dict[int, Value]], last: Value) -> None:
        """The adjoints of the state behind a segment. Of a loop of which it is not known when it ends, one of the two
        is not read."""
        for n, leaving in known.items():
            total: Value = zero_of(self.unit.wide(self._place(n)[0]))
            for taken, cotangent in leaving.items():
                self.put(taken, self._where(last, cotangent))
                total = add(self.b, total, cotangent)
            self.put(n, self._where(self.b.binary("xor", last, ConstInt(ty.I1, 1)), total))

    def _where(self, condition: Value, cotangent: Value) -> Value:
        if self.made.ends is not None:
            return cotangent
        return self.b.select(condition, cotangent, zero_of(cotangent.type))

    def _segment(self, count: Value, length: Instruction) -> Value:
        """Both sweeps of a segment, and how long the next one is; the iterations that ran."""
        peak = self.runtime("irgrad.tape.peak", _number(0))
        self.both_sweeps(count)
        used = self.runtime("irgrad.tape.peak", _number(0))
        self.runtime("irgrad.tape.peak", self.b.select(self.b.icmp("ugt", peak, used), peak, used))
        ran = count if self.made.ends is None else self.field(self.made.ends + 1)
        each = self.b.add(self.b.binary("udiv", used, ran), _number(1))
        fits = self.least(self.b.binary("udiv", _number(_CACHE), each), _number(_MOST))
        fits = self.b.select(self.b.icmp("eq", fits, _number(0)), _number(1), fits)
        endless = self.b.icmp("eq", self.read(length), _number(ENDLESS))
        self.b.store(self.b.select(endless, _number(ENDLESS), fits), length)
        return ran
