"""Blocks from which a function does not return: it throws, aborts, or a check has failed.

    loop:  ...  br c, next, fail          a loop's own: nothing but its iterations goes there
    fail:  call @__cxa_throw(...)
           unreachable

An iteration that goes there is the last one, and what is behind the loop never runs then: such a block is no way for a
loop to end, and goes where the iteration goes. Compilers have one block for several checks; here each has its own.
"""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.never_returning import live_exits, never_returning
from irgrad.engine.ir.model import Block, Function, Instruction
from irgrad.engine.ir.opcodes import of_kind
from irgrad.engine.ir.rewrite import copied_blocks
from irgrad.rules.effects import facts

__all__ = ["copied_ends", "dead_ends", "ends_of", "is_plain", "own_dead_ends", "way_out"]

_UNWIND = of_kind("exception") | {"invoke", "callbr"}
_MOST = 2_000  # instructions of copies


def dead_ends(fn: Function, loop: Loop) -> list[Block]:
    """The blocks behind a loop that nothing but its iterations leads to and that nothing returns from."""
    cfg, dead = get(Cfg, fn), never_returning(fn)
    found = {block for block in loop.exits if block in dead}
    work = list(found)
    while work:
        more = [b for b in cfg.succs(work.pop()) if b not in found]
        found.update(more)
        work += more
    while shared := {b for b in found if any(p not in found and not loop.contains(p) for p in cfg.preds(b))}:
        found -= shared
    return [block for block in fn.blocks if block in found]


def way_out(fn: Function, loop: Loop) -> Block | None:
    """The block behind a loop with one latch that goes on at the end of an iteration alone, but for dead ends."""
    own = dead_ends(fn, loop)
    ways = {(block, after) for block in loop.exiting for after in block.successors
            if not loop.contains(after) and after not in own}  # fmt: skip
    return next(iter(ways))[1] if len(ways) == 1 and next(iter(ways))[0] is loop.latch else None


def ends_of(fn: Function, loop: Loop) -> list[Block]:
    """The other exits, with all that is behind them."""
    live, cfg = live_exits(fn, loop), get(Cfg, fn)
    found = {b for block in loop.exits if block not in live for b in _behind(cfg, block)}
    return [block for block in cfg.rpo if block in found]


def copied_ends(loop: Loop, part: Collection[Block]) -> list[Block]:
    """Copies of the blocks of `ends_of`, to which the loop leads from then on, and nothing else. They free nothing:
    memory from before the loop, which is of the function that goes on where no iteration ends this way."""
    blocks, values = copied_blocks(part)
    for new in blocks.values():
        new.instructions = [made for made in new.instructions if not (made.is_call and _frees(made))]
    own = {*loop.blocks, *blocks.values()}
    for new in blocks.values():
        for made in new.instructions:
            if made.opcode == "phi":
                rows = [(o, b) for o, b in zip(made.operands, made.blocks, strict=True) if b in own]
                made.operands, made.blocks = [o for o, _ in rows], [b for _, b in rows]
            made.operands = [values.get(o, o) for o in made.operands]
    for block in loop.blocks:
        block.terminator.blocks = [blocks.get(b, b) for b in block.terminator.blocks]
    for block in part:
        for phi in block.phis:
            rows = [(o, b) for o, b in zip(phi.operands, phi.blocks, strict=True) if not loop.contains(b)]
            phi.operands, phi.blocks = [o for o, _ in rows], [b for _, b in rows]
    return list(blocks.values())


def own_dead_ends(fn: Function) -> bool:
    """Have each block that leads to a dead end lead to one of its own, as far as that takes few instructions. Returns
    whether there are any copies."""
    left, changed = _MOST, False
    while True:
        cfg, dead = get(Cfg, fn), never_returning(fn)
        several = next((b for b in cfg.rpo if b in dead and len(cfg.preds(b)) > 1 and is_plain(b)), None)
        if several is None:
            return changed
        part = [b for b in cfg.rpo if b in _behind(cfg, several)]
        left -= sum(len(block.instructions) for block in part)
        if left < 0 or not all(map(is_plain, part)):
            return changed
        _copy(fn, several, part, cfg.preds(several)[-1])
        changed = True


def _behind(cfg: Cfg, first: Block) -> set[Block]:
    found, work = {first}, [first]
    while work:
        more = [b for b in cfg.succs(work.pop()) if b not in found]
        found.update(more)
        work += more
    return found


def _frees(call: Instruction) -> bool:
    known = facts(call.callee_name or "")
    return known is not None and known.kind == "deallocator"


def is_plain(block: Block) -> bool:
    """Whether a block may be had twice."""
    return all(i.opcode not in _UNWIND and not (i.call is not None and i.call.bundles) for i in block.instructions)


def _copy(fn: Function, first: Block, part: list[Block], before: Block) -> None:
    """Copies of blocks, which one block leads to in place of the first of them."""
    blocks, values = copied_blocks(part)
    blocks[first].instructions = blocks[first].instructions[len(first.phis) :]
    values |= {phi: phi.operands[phi.blocks.index(before)] for phi in first.phis}
    for new in blocks.values():
        new.function = fn
        for made in new.instructions:
            if made.opcode == "phi":
                rows = [(o, b) for o, b in zip(made.operands, made.blocks, strict=True) if b in blocks.values()]
                made.operands, made.blocks = [o for o, _ in rows], [b for _, b in rows]
            made.operands = [values.get(o, o) for o in made.operands]
    for phi in first.phis:
        _without(phi, before)
    before.terminator.blocks = [blocks[first] if b is first else b for b in before.terminator.blocks]
    fn.blocks += blocks.values()


def _without(phi: Instruction, block: Block) -> None:
    rows = [(o, b) for o, b in zip(phi.operands, phi.blocks, strict=True) if b is not block]
    phi.operands, phi.blocks = [o for o, _ in rows], [b for _, b in rows]
