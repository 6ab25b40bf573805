"""The distance of two pointers that move together, as the begin and the end of a vector do, leaves its loop.

`std::swap(u, v)` in a time loop exchanges the pointers of two vectors, so that `u.size()`, an end less a begin, is
computed anew in each step, and no count of an inner loop is known beforehand. Both vectors have one size: if the
distances of all pairs that change places are the same on entry, it never changes (an induction over the steps).
"""

from __future__ import annotations

from collections.abc import Hashable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value, is_zero
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.preheader import numbers_leave

__all__ = ["settle_distances"]

_MOST = 8  # pairs that change places
_DEPTH = 4  # phis behind each other


def settle_distances(fn: Function) -> int:
    """Differences of pointers that a loop does not change are computed before it. Returns how many there were."""
    loops = get(Loops, fn)
    total = 0
    for loop in reversed(loops.all):
        if loop.preheader is None or loop.latch is None:
            continue
        replaced: dict[Value, Value] = {}
        for block in loop.blocks:
            for instr in block.instructions:
                pair = _pair(instr)
                if pair is not None and all(_carried(value, loop) for value in pair) and _same(loop, pair):
                    replaced[instr] = _entering(loop, pair, instr)
        if replaced:
            replace_uses(fn, replaced)
            _drop(replaced, loop)
            numbers_leave(loop, loops)
            total += len(replaced)
    return total


def _drop(replaced: dict[Value, Value], loop: Loop) -> None:
    """Removes the differences, and the casts that nothing else uses."""
    for block in loop.blocks:
        block.instructions[:] = [i for i in block.instructions if i not in replaced]
    used = {o for block in loop.blocks for i in block.instructions for o in i.operands}
    casts = {o for instr in replaced if isinstance(instr, Instruction) for o in instr.operands} - used
    for block in loop.blocks:
        block.instructions[:] = [i for i in block.instructions if i not in casts]


def _pair(instr: Instruction) -> tuple[Value, Value] | None:
    """The pointers of which an instruction takes the difference in bytes."""
    if instr.opcode != "sub" or instr.type is not ty.I64:
        return None
    casts = [o for o in instr.operands if isinstance(o, Instruction) and o.opcode == "ptrtoint"]
    return (casts[0].operands[0], casts[1].operands[0]) if len(casts) == 2 else None


def _same(loop: Loop, pair: tuple[Value, Value]) -> bool:
    """Whether two phis of the header are as far apart in every iteration as in the first one."""
    work, seen, distances = [pair], set[tuple[Value, Value]](), set[Hashable]()
    while work:
        now = work.pop()
        if now in seen:
            continue
        seen.add(now)
        if all(_carried(value, loop) for value in now):
            distances.add(_distance(*_along(now, loop.preheader), _DEPTH))
            work.append(_along(now, loop.latch))
        elif any(isinstance(value, Instruction) and loop.contains(value.block) for value in now):
            return False
        else:
            distances.add(_distance(*now, _DEPTH))
        if len(seen) > _MOST or None in distances or len(distances) > 1:
            return False
    return True


def _carried(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and value.opcode == "phi" and value.block is loop.header


def _along(pair: tuple[Value, Value], block: Block | None) -> tuple[Value, Value]:
    """What two phis of one block are where control comes from `block`."""
    first, second = (phi.operands[phi.blocks.index(block)] for phi in pair)  # type: ignore[attr-defined]
    return first, second


def _distance(end: Value, begin: Value, depth: int) -> Hashable:
    """Equal for pairs of pointers that are equally far apart; None where that is not known."""
    if end is begin or (is_zero(end) and is_zero(begin)):
        return 0
    if not isinstance(end, Instruction) or not depth:
        return None
    if end.opcode == "getelementptr" and end.operands[0] is begin and len(end.operands) == 2 and end.elem is not None:
        index = end.operands[1]
        size = ty.size_of(end.elem)
        return size * index.value if isinstance(index, ConstInt) else (size, index)
    if end.opcode == "phi" and isinstance(begin, Instruction) and begin.opcode == "phi" and begin.block is end.block:
        parts = [(block, _distance(*_along((end, begin), block), depth - 1)) for block in dict.fromkeys(end.blocks)]
        return None if any(part is None for _, part in parts) else (end.block, *parts)
    return None


def _entering(loop: Loop, pair: tuple[Value, Value], like: Instruction) -> Value:
    """The distance in front of the loop."""
    assert loop.preheader is not None
    place = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    dbg = like.metadata.get("dbg")
    place.metadata = {"dbg": dbg} if dbg else {}
    ends = [place.cast("ptrtoint", value, ty.I64) for value in _along(pair, loop.preheader)]
    return place.sub(ends[0], ends[1], ())
