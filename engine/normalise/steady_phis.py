"""Values that iterations hand on unchanged, on a condition that is the same in all of them: they are what entered.

    for (p...) { for (j = 0; j < k; j++) t[j] = ...;  s += log_sum_exp(t, k); }     // which begins with t[0]

LLVM takes t[0] from the inner loop where that ran, and where it does not from the iteration before:

    old = phi [start, before], [new, latch];    k > 0 ? new = what was stored : new = old

If one iteration goes by the second way then so do all, and `old` is `start`; on the other way nothing asks for it. So
iterations hand on nothing (`t` is each one's own). As a phi it would tie each iteration to the one before.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.uses import uses_of

__all__ = ["drop_steady"]


def drop_steady(fn: Function) -> int:
    """Let such values be what entered the loop, and go. Returns how many there were."""
    loops, total = get(Loops, fn), 0
    if not loops.top:
        return 0
    dominators, uses = get(Dominators, fn), uses_of(fn.blocks)
    for loop in loops.all:
        before, latch = loop.preheader, loop.latch
        if before is None or latch is None:
            continue
        for phi in loop.header.phis:
            following = phi.operands[phi.blocks.index(latch)]
            users = uses.get(phi, [])
            there = following.block if isinstance(following, Instruction) else None
            if not users or there is None or there is loop.header or not isinstance(following, Instruction):
                continue
            edges = [block for block in _unchanged(loops, loop, phi, following)
                     if _asks_the_same(loop, dominators, block, there, latch)]  # fmt: skip
            if edges and all(_only_on(user, there, phi, edges) for user in users):
                start = phi.operands[phi.blocks.index(before)]
                for user in users:
                    user.operands = [start if operand is phi else operand for operand in user.operands]
                loop.header.instructions.remove(phi)
                total += 1
    return total


def _unchanged(loops: Loops, loop: Loop, phi: Instruction, following: Instruction) -> list[Block]:
    """The blocks from which the next value is the old one."""
    if following.opcode != "phi" or following.block is None or loops.of(following.block) is not loop:
        return []
    return [b for v, b in zip(following.operands, following.blocks, strict=True) if v is phi and loops.of(b) is loop]


def _asks_the_same(loop: Loop, dominators: Dominators, block: Block, to: Block, latch: Block) -> bool:
    """Whether each iteration goes from one block to the other, or none does."""
    end = block.terminator
    condition: Value | None = end.operands[0] if end.operands and len(end.blocks) == 2 else None
    outside = not isinstance(condition, Instruction) or not loop.contains(condition.block)
    return condition is not None and outside and end.blocks.count(to) == 1 and dominators.dominates(block, latch)


def _only_on(user: Instruction, block: Block | None, phi: Instruction, edges: list[Block]) -> bool:
    """Whether a user takes a value only where it comes into a block by one of these edges."""
    if user.opcode != "phi" or user.block is not block:
        return False
    return all(b in edges for v, b in zip(user.operands, user.blocks, strict=True) if v is phi)
