"""What a loop does not change leaves it: numbers, addresses, phis that an invariant condition decides, loads.

LLVM's passes have done that as far as they see. They do not see that an argument's memory and memory that the function
allocates are two, through any number of stored pointers (the points-to sets do): the load of `a[i][k]` in front of
`c[i][j] += a[i][k] * b[k][j]` stays in the inner loop, and in reverse its adjoint goes through memory in each
iteration. Nor do they make a select of `phi(null, p)`, the memory of a vector that may be empty, so that its size is
unknown before the loop.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.loop_memory import LoopMemory, comes_back, keep_of_metadata
from irgrad.engine.normalise.preheader import always_runs, before, can_leave, numbers_leave

__all__ = ["leave_loops", "may_gain"]


def may_gain(fn: Function) -> bool:
    """Whether a loop of the function has a load or a phi that might leave it."""
    loops = get(Loops, fn)
    return any(
        any(i.opcode == "load" and can_leave(i.operands[0], loop) for i in block.instructions)
        or any(_decided(phi, loop, loops) is not None for phi in block.phis)
        for loop in loops.all if loop.preheader is not None for block in loop.blocks
    )  # fmt: skip


def leave_loops(pointers: Pointers, fn: Function) -> int:
    """Move what leaves its loop. Returns how much did. No instruction that writes memory is made or moved."""
    loops, memory = get(Loops, fn), LoopMemory(pointers, fn)
    count = 0
    for loop in reversed(loops.all):
        if loop.preheader is not None:
            moved = _phis(fn, loop, loops) + _loads(memory, loop)
            if moved:
                numbers_leave(loop, loops)
            count += moved
    return count


def _phis(fn: Function, loop: Loop, loops: Loops) -> int:
    assert loop.preheader is not None
    place = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    replaced: dict[Value, Value] = {}
    made: dict[Value, Value] = {}
    for block in loop.blocks:
        for phi in block.phis:
            found = _decided(phi, loop, loops)
            if found is not None and not any(operand in replaced for operand in phi.operands):
                parts = [before(value, loop, place, made, runs=False) for value in found]
                replaced[phi] = new = place.select(*parts)
                if isinstance(new, Instruction) and new is not parts[1]:
                    new.name = phi.name  # operand bundles hold names
    if replaced:
        replace_uses(fn, replaced)
        for block in loop.blocks:
            block.instructions[:] = [i for i in block.instructions if i not in replaced]
    return len(replaced)


def _decided(phi: Instruction, loop: Loop, loops: Loops) -> tuple[Value, Value, Value] | None:
    """(condition, value where it holds, value where not) of a phi behind one branch; all can leave the loop."""
    block = phi.block
    inner = loops.of(block) if block is not None else None
    if block is None or inner is None or inner.header is block or len(phi.operands) != 2:
        return None
    up = loops.dom.idom(block)
    if up is None or not loop.contains(up) or not all(can_leave(value, loop) for value in phi.operands):
        return None
    last = up.terminator
    if last.opcode != "br" or len(set(last.blocks)) != 2 or not can_leave(last.operands[0], loop):
        return None
    sides = [_side(source, block, up, loops) for source in phi.blocks]
    if sorted(map(str, sides)) != ["0", "1"]:
        return None
    return last.operands[0], phi.operands[sides.index(0)], phi.operands[sides.index(1)]


def _side(source: Block, block: Block, up: Block, loops: Loops) -> int | None:
    """By which way of the branch at the end of `up` control comes to `block` from `source`."""
    for way, target in enumerate(up.successors):
        if source is up:
            if target is block:
                return way
        elif loops.cfg.preds(target) == [up] and loops.dom.dominates(target, source):
            return way
    return None


def _loads(memory: LoopMemory, loop: Loop) -> int:
    """Loads of memory that nothing in the loop writes: those that run whenever it is entered, and those of memory that
    is accessed before."""
    if not all(comes_back(i) for block in loop.blocks for i in block.instructions if i.is_call):
        return 0
    assert loop.preheader is not None
    place = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    made: dict[Value, Value] = {}
    count = 0
    for block in loop.blocks:
        always = always_runs(block, loop, memory.loops)
        for load in [i for i in block.instructions if i.opcode == "load" and not i.volatile and not i.ordering]:
            leaves = can_leave(load.operands[0], loop) and memory.alone(load, loop)
            if leaves and (always or memory.reached(load, loop)):
                load.operands[0] = before(load.operands[0], loop, place, made, runs=always)
                block.instructions.remove(load)
                if not always:
                    keep_of_metadata(load)
                place.insert(load)
                count += 1
    return count
