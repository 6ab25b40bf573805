"""Blocks from which a function never returns: it throws, aborts, or a check has failed. No loop ends by them."""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.model import Block, Function

__all__ = ["live_exits", "never_returning"]


def never_returning(fn: Function) -> Collection[Block]:
    """Where every way ends in `unreachable`, without a loop on it, and without a landing pad."""
    cfg = get(Cfg, fn)
    found: set[Block] = set()
    for block in reversed(cfg.rpo):
        after = cfg.succs(block)
        ends = block.terminator.opcode == "unreachable" or (after and found.issuperset(after))
        if ends and not any(i.opcode == "landingpad" for i in block.instructions):
            found.add(block)
    return found


def live_exits(fn: Function, loop: Loop) -> list[Block]:
    """The exits of a loop from which a function may return: those by which the loop ends."""
    dead = never_returning(fn) if len(loop.exits) > 1 else ()
    return [block for block in loop.exits if block not in dead]
