"""Loads of what a load or a store in front of them has had already, with nothing between that writes it.

LLVM's passes have found such loads as far as they see. They keep those with a store between that may go anywhere, by
all that they know; the points-to sets say that it goes elsewhere. A block that is filled from a vector of five numbers
reads each of them once, and so does the tape; a row that is scaled, and then taken from other rows, is what was stored.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.loop_memory import comes_back

__all__ = ["may_repeat", "merge_loads"]

_Place = tuple[Value, object]
"""An address, and the type of what is there."""


def may_repeat(fn: Function) -> bool:
    """Whether a block loads what it has loaded or stored, as it seems."""
    return any(_repeats(block) for block in fn.blocks)


def merge_loads(pointers: Pointers, fn: Function) -> dict[Value, Value]:
    """Let loads of a block that find what is known be that. Returns what each load that goes was replaced by."""
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        if _repeats(block):
            replaced.update(_repeated(pointers, block))
    if replaced:
        replace_uses(fn, replaced)
        for block in fn.blocks:
            block.instructions[:] = [i for i in block.instructions if i not in replaced]
    return replaced


def _repeats(block: Block) -> bool:
    seen: set[_Place] = set()
    for instr in block.instructions:
        if _plain(instr):
            if instr.opcode == "load" and _place(instr) in seen:
                return True
            seen.add(_place(instr))
    return False


def _repeated(pointers: Pointers, block: Block) -> dict[Value, Value]:
    known: dict[_Place, tuple[Value, int]] = {}
    replaced: dict[Value, Value] = {}
    for instr in block.instructions:
        if instr.opcode == "load" and _plain(instr) and _place(instr) in known:
            replaced[instr] = known[_place(instr)][0]
            continue
        if _settles(instr):
            known.clear()
        elif written := pointers.instr_writes(instr):
            known = {place: found for place, found in known.items() if not found[1] & written}
        objects = pointers.expand(pointers.of(instr.operands[-1])) if _plain(instr) else 0
        if objects:
            known[_place(instr)] = (instr if instr.opcode == "load" else instr.operands[0], objects)
    return replaced


def _plain(instr: Instruction) -> bool:
    return instr.opcode in ("load", "store") and not instr.volatile and not instr.ordering


def _place(access: Instruction) -> _Place:
    return access.operands[-1], access.type if access.opcode == "load" else access.operands[0].type


def _settles(instr: Instruction) -> bool:
    """Whether memory may be another's behind an instruction: fences, what other threads see, calls of unknown ends."""
    return instr.volatile or bool(instr.ordering) or (instr.is_call and not comes_back(instr))
