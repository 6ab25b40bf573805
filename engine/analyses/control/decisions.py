"""Which branches decide whether an iteration of a loop comes to a block."""

from __future__ import annotations

from typing import NamedTuple

from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir.model import Block, Instruction, Value

__all__ = ["Decision", "decisions"]


class Decision(NamedTuple):
    """A branch on `condition` that has to go the way of `holds`."""

    condition: Value
    holds: bool


def decisions(loops: Loops, loop: Loop, block: Block) -> list[Decision] | None:
    """The branches from the header to `block`, innermost first: an iteration in which all go that way comes to the
    block, or leaves the loop before; one in which some goes another does not come to it. None where there is no such
    list: another way leads past the block, or what decides is not a branch.
    """
    found: list[Decision] = []
    node = block
    while node is not loop.header:
        up = loops.dom.idom(node)
        if up is None or not loop.contains(up):
            return None
        last: Instruction = up.terminator
        targets = list(dict.fromkeys(last.blocks))
        if len(targets) > 1 and loops.cfg.preds(node) == [up]:
            if last.opcode != "br":
                return None
            found.append(Decision(last.operands[0], last.blocks[0] is node))
        elif _past(loops, loop, node, targets):
            return None
        node = up
    return found


def _past(loops: Loops, loop: Loop, node: Block, starts: list[Block]) -> bool:
    """Whether an iteration can end, without leaving the loop, on a way from one of some blocks that misses `node`."""
    work = [start for start in starts if start is not node and loop.contains(start)]
    seen = set(work)
    while work:
        item = work.pop()
        if item is loop.header or loop.header in loops.cfg.succs(item):
            return True
        fresh = [s for s in loops.cfg.succs(item) if s is not node and s not in seen and loop.contains(s)]
        seen.update(fresh)
        work += fresh
    return False
