"""Loads on short branches that may be made before them: what they read is read by another iteration anyway.

    d = a[i] > 0 ? u[i] - u[i - 1] : u[i + 1] - u[i];        // upwind differences

A loop that reads or writes u[i] in each of its iterations reaches u[i - 1] in all but the first, and u[i + 1] in all
but the last. So the first and the last iteration are cut off, and in the loop between them both loads may stand in
front of the branch, which can become a choice then (`short_branches.py`): nothing else that the loop does changes, and
a load behind which no store or call stands before the branch reads the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.condition_changes import opened
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import TripCount, signed
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.loop_parts import Part, cut, may_be_cut, place_before

__all__ = ["early_loads"]

_LONGEST = 120  # instructions of a loop that is cut
_SHORTEST = 16  # iterations, where they are known
_AHEAD = 1  # iterations that are cut off at an end
_Key = tuple[Value, int, frozenset[tuple[object, int]], int]
_Place = tuple[_Key, int]


@dataclass(frozen=True, slots=True)
class _Reach:
    """A load on a branch reads what the iterations `least` to `most` after its own read, all together."""

    least: int
    most: int


def early_loads(fn: Function, wanted: Callable[[Loop, set[Instruction]], bool]) -> set[Instruction]:
    """Loads on branches of innermost loops that may be made before the branch, in loops that were cut for it. wanted:
    whether a loop is worth it where these loads may be."""
    safe: set[Instruction] = set()
    done: set[Block] = set()
    while (found := _next(fn, wanted, done)) is not None:
        loop, reach = found
        headers = {loop.header}
        if reach.least or reach.most:
            headers = _cut(fn, loop, reach)
        done |= {loop.header, *headers}
        forms = Induction(fn)
        for other in get(Loops, fn).all:
            if other.header in headers:
                safe.update(_loads(fn, other, forms) or ())
    return safe


def _next(
    fn: Function, wanted: Callable[[Loop, set[Instruction]], bool], done: set[Block]
) -> tuple[Loop, _Reach] | None:
    loops = get(Loops, fn)
    forms = Induction(fn, loops=loops)
    for loop in loops.all:
        latch = loop.latch
        if loop.header in done or loop.children or latch is None or loop.exiting != [latch] or len(loop.blocks) < 3:
            continue
        done.add(loop.header)
        rows = _loads(fn, loop, forms)
        if not rows or not wanted(loop, set(rows)):
            continue
        reach = _Reach(min(0, *rows.values()), max(0, *rows.values()))
        if not reach.least and not reach.most:
            return loop, reach
        trip = forms.trip_count(loop)
        known = trip is not None and trip.certain and (trip.const is None or trip.const + 1 >= _SHORTEST)
        if known and may_be_cut(loop, loops, uses_of(fn.blocks), _LONGEST):
            return loop, reach
    return None


def _cut(fn: Function, loop: Loop, reach: _Reach) -> set[Block]:
    """Cut the first and the last iteration off, as far as they are reached; the headers of the loop between."""
    forms = Induction(fn, loops=get(Loops, fn))
    found = forms.trip_count(loop)
    assert found is not None
    trip = TripCount(opened(found.expr, forms))
    at = place_before(fn, loop, trip.uses, trip.divides)
    zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
    last = trip.emit(at)
    count = at.add(last, one, ())
    if reach.least and reach.most:
        end: Value = at.select(at.icmp("ugt", last, one), last, one)
        parts = [Part(zero, one, {}, once=True, runs=True), Part(one, end, {}), Part(end, count, {}, once=True)]
    elif reach.least:
        parts = [Part(zero, one, {}, once=True, runs=True), Part(one, count, {})]
    else:
        parts = [Part(zero, last, {}), Part(last, count, {}, once=True, runs=True)]
    return set(cut(fn, loop, parts))


def _loads(fn: Function, loop: Loop, forms: Induction) -> dict[Instruction, int] | None:
    """The loads on branches of a loop, and how many iterations later (or, below zero, before) each of their places is
    reached in any case; None where one is not known to be, or something else stands in the way."""
    dominators = get(Dominators, fn)
    assert loop.latch is not None
    cfg = get(Cfg, fn)
    asked: list[tuple[Instruction, _Place]] = []
    places: dict[Block, set[_Place]] = {}
    for block in loop.blocks:
        own = places[block] = set[_Place]()
        for instr in block.instructions:
            if instr.opcode not in ("load", "store"):
                continue
            if instr.volatile or instr.ordering:
                return None
            place = _place(loop, forms, instr)
            if place is not None:
                own.add(place)
            if not dominators.dominates(block, loop.latch):
                if instr.opcode == "store" or place is None:
                    return None
                asked.append((instr, place))
    always: dict[_Key, list[int]] = {}
    for block in loop.blocks:
        if dominators.dominates(block, loop.latch):
            for key, at in _reached(block, loop, places, cfg):
                always.setdefault(key, []).append(at)
    found: dict[Instruction, int] = {}
    for instr, (key, at) in asked:
        ahead = [(at - other) // key[1] for other in always.get(key, ()) if (at - other) % key[1] == 0]
        least = min(ahead, key=abs, default=None)
        if least is None or abs(least) > _AHEAD:
            return None
        found[instr] = least
    return found


def _reached(
    block: Block, loop: Loop, places: dict[Block, set[_Place]], cfg: Cfg
) -> set[_Place]:
    """The places that are reached where a block runs, and on both sides of a branch at its end."""
    sides = block.successors
    alone = len(sides) == 2 and all(
        side is not loop.header and loop.contains(side) and list(cfg.preds(side)) == [block] for side in sides
    )
    if not alone:
        return places[block]
    return places[block] | (_reached(sides[0], loop, places, cfg) & _reached(sides[1], loop, places, cfg))


def _place(loop: Loop, forms: Induction, instr: Instruction) -> _Place | None:
    """Where an access is: what its address has in common with others that differ by a constant in each iteration, and
    that constant; None for an address that does not move by a constant, or hangs on what the loop computes."""
    base, form = forms.address(instr.operands[-1])
    step = form.stride(loop)
    if not step.is_const or not signed(step.const) or not _outside(base, loop):
        return None
    rest = form.at_start(loop).terms
    for symbol in rest:
        if not isinstance(symbol, Loop) and not (isinstance(symbol, Value) and _outside(symbol, loop)):
            return None
    kind = instr.type if instr.opcode == "load" else instr.operands[0].type
    return (base, signed(step.const), frozenset(rest.items()), ty.store_size(kind)), signed(form.const)


def _outside(value: Value, loop: Loop) -> bool:
    if isinstance(value, Instruction):
        return not loop.contains(value.block)
    return isinstance(value, Constant | Argument)
