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

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.condition_changes import Change, Number, at_end, change_of, opened
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.loop_parts import Part, choose, cut, may_be_cut, place_before
from irgrad.engine.normalise.preheader import always_runs

__all__ = ["split_ranges"]

_PARTS = 4  # of one loop
_LONGEST = 120  # instructions of a loop
_SHORTEST = 16  # iterations, where they are known


def split_ranges(fn: Function) -> int:
    """Cut the loops of a function where their conditions change. Returns how often."""
    count = 0
    left: dict[Block, int] = {}
    asked: set[Block] = set()
    while (found := _next(fn, left, asked)) is not None:
        loop, change, trip = found
        room = left.get(loop.header, _PARTS)
        extra = _extra(change, trip)
        for header in _split(fn, loop, change, trip):
            left[header] = room - extra
            asked.discard(header)
        count += 1
    return count


def _next(fn: Function, left: dict[Block, int], asked: set[Block]) -> tuple[Loop, Change, TripCount] | None:
    loops = get(Loops, fn)
    users: Uses | None = None
    forms: Induction | None = None
    for loop in loops.all:
        if loop.header in asked:
            continue
        asked.add(loop.header)
        room = left.get(loop.header, _PARTS) - 1
        users = uses_of(fn.blocks) if users is None else users
        if room <= 0 or loop.children or not may_be_cut(loop, loops, users, _LONGEST):
            continue
        ends = loop.latch.terminator.operands[0] if loop.latch is not None else None
        conditions = [c for c in _conditions(loop) if c is not ends or len(users[c]) > 1]
        if not conditions or not _has_floats(loop):
            continue
        forms = forms or Induction(fn, loops=loops)
        trip = forms.trip_count(loop)
        if trip is None or not trip.certain or (trip.const is not None and trip.const + 1 < _SHORTEST):
            continue
        trip = TripCount(opened(trip.expr, forms))
        changes = [change for c in conditions if (change := change_of(c, loop, forms)) is not None]
        rows = sorted((_extra(c, trip), n, c) for n, c in enumerate(changes)
                      if c.condition is not ends or at_end(c.at, trip) is False)  # fmt: skip
        if rows and rows[0][0] <= room:
            return loop, rows[0][2], trip
    return None


def _extra(change: Change, trip: TripCount) -> int:
    """How many parts more there are then."""
    return 1 if not change.point or at_end(change.at, trip) is not None else 2


def _has_floats(loop: Loop) -> bool:
    return any(isinstance(i.type, ty.FloatType) for block in loop.blocks for i in block.instructions)


def _conditions(loop: Loop) -> Iterator[Instruction]:
    """The comparisons that branches and choices of the loop hang on; that which ends it where it is one of them."""
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
                yield item
            elif (item.opcode in BITWISE or item.opcode == "select") and loop.contains(item.block):
                work += item.operands
            elif not loop.contains(item.block):
                yield item


# -- the parts ---------------------------------------------------------------------------------------------------------


def _split(fn: Function, loop: Loop, change: Change, trip: TripCount) -> list[Block]:
    """Have a loop in its parts, with the numbers of their iterations computed before it. Returns their headers."""
    number, zero, one = change.at, ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
    values = [*trip.uses, *TripCount(number.start).uses, *TripCount(number.bound).uses]
    at = place_before(fn, loop, [*values, *([number.value] if number.value is not None else [])], trip.divides)
    first: dict[Value, Value] = {change.condition: ConstInt(ty.I1, int(change.first))}
    other: dict[Value, Value] = {change.condition: ConstInt(ty.I1, int(not change.first))}
    if number.kind == "all":
        assert number.value is not None
        return choose(fn, loop, at.insert(Instruction("freeze", ty.I1, [number.value])), first, other)
    last = trip.emit(at)
    count = at.add(last, one, ())
    end = at_end(number, trip)
    if end is True:
        alone, rest = (other, first) if change.point else (first, other)
        return cut(fn, loop, [Part(zero, one, alone, once=True, runs=True), Part(one, count, rest)])
    if end is False:
        return cut(fn, loop, [Part(zero, last, first), Part(last, count, other, once=True, runs=True)])
    where = _emit(number, at, count)
    if not _always(fn, loop, change.condition):
        where = at.insert(Instruction("freeze", ty.I64, [where]))  # nothing is promised of what is never compared
    if not change.point:
        return cut(fn, loop, [Part(zero, where, first), Part(where, count, other)])
    behind = at.select(at.icmp("ult", where, count), at.add(where, one, ()), count)
    return cut(fn, loop, [Part(zero, where, first), Part(where, behind, other, once=True), Part(behind, count, first)])


def _always(fn: Function, loop: Loop, condition: Instruction) -> bool:
    """Whether each iteration branches by the condition."""
    block = condition.block
    if block is None or block.terminator.operands[:1] != [condition]:
        return False
    return always_runs(block, loop, get(Loops, fn))


def _emit(number: Number, at: Builder, count: Value) -> Value:
    """The number of an iteration, at most `count`."""
    zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
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
