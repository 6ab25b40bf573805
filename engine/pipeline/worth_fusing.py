"""Which loops are fused (see `normalise/known_cotangents.py`) where nobody asks: those with a long tape an iteration,
and those whose iterations allocate memory with adjoints.

A tape of all iterations is written once and read once, through whatever memory it takes; that of one iteration stays in
the nearest cache. Against that stands that the sweeps of one iteration wait for each other, where those of neighbouring
iterations overlap with a tape of all. Measured (`python -m benchmarks.independent_loops`): from two kilobytes an
iteration on it is 0.7 to 1.0 of the time, below (a few numbers for each turn of one inner loop) 0.8 to 1.2. Memory that
an iteration allocates would wait with its adjoints for the reverse sweep: two vectors of eight numbers made by
`push_back` take 0.4 of the time where the next iteration gets the same memory again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.differentiate.tape.min_cut import LOOP_WEIGHT
from irgrad.engine.differentiate.tape.tape_plan import TapePlan
from irgrad.engine.ir import types as ty
from irgrad.engine.normalise.fused import fused_loops
from irgrad.engine.normalise.known_cotangents import Activity
from irgrad.engine.normalise.repeatable import Repeatable
from irgrad.engine.normalise.segments import EVERY, Choice
from irgrad.rules.errors import IRGradError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.conventions import Abi
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.ir.model import Block
    from irgrad.engine.normalise.known_cotangents import Sums

__all__ = ["worth_fusing"]

_BYTES = 2048
"""Of the tape of an iteration, if loops in it run sixteen times."""


def worth_fusing(unit: Unit, abi: Abi) -> dict[Block, Sums]:
    """Loops of the root, by their headers, and their sums. abi: that of the root"""
    request = unit.request
    if not any(loop.children for loop in get(Loops, unit.root).top):
        return {}
    active = Activity(unit.activity.value, unit.activity.object)
    found = fused_loops(unit.module, unit.pointers, {EVERY: Choice()}, request.bytes_of, active, nests=True)
    loops = [loop for loop in get(Loops, unit.root).top if loop.header in found]
    if not loops:
        return {}
    try:
        plan = TapePlan(ReverseFacts(unit, unit.root, abi, split=False))
    except IRGradError:
        return {}  # what has no derivative is refused as ever
    long = [loop for loop in loops if _bytes(plan, loop) >= _BYTES or _allocates(unit, loop)]
    return {loop.header: found[loop.header] for loop in long if _own(unit, loop)}


def _allocates(unit: Unit, loop: Loop) -> bool:
    """Whether iterations allocate memory whose adjoints are wanted: both would wait for the reverse sweep, new for each
    iteration, and be found in no cache then."""
    again = Repeatable(unit.pointers, unit.root, loop, unit.request.bytes_of)
    made = (unit.pointers.object_of.get(instr) for instr in again.body if instr.opcode == "call")
    return any(obj is not None and obj.kind == "heap" and unit.activity.object(obj) for obj in made)


def _bytes(plan: TapePlan, loop: Loop) -> int:
    """Of the tape of an iteration."""
    rows = [(saved.level, ty.store_size(saved.type)) for saved in plan.saved.values()]
    return sum(size * LOOP_WEIGHT ** (level.depth - loop.depth)
               for level, size in rows if level is not None and loop.contains(level.header))  # fmt: skip


def _own(unit: Unit, loop: Loop) -> bool:
    """Whether it is likely that no iteration reads what others wrote: it is known where iterations read, or all of the
    memory is written, which is as long as that takes and not of a constant length."""
    again = Repeatable(unit.pointers, unit.root, loop, unit.request.bytes_of)
    return all(memory.cover is None or memory.cover.reads is not None or (
        memory.object is not None and memory.object.size is None) for memory in again.saved)  # fmt: skip
