"""What the primal sweep computes for its own sake: for stores that somebody reads, calls with effects, and branches.

A value that nothing but the tape asks for costs nothing in the primal sweep when it is computed in the reverse sweep
in its place, however much it costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir.model import Instruction

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts


def computed_anyway(facts: ReverseFacts, wanted: Iterable[Instruction]) -> set[Instruction]:
    """The instructions of the primal sweep that stay when the reverse sweep takes `wanted` from it and no more."""
    live: set[Instruction] = set()
    work = list(wanted)
    for block in facts.cfg.rpo:
        work += [i for i in block.instructions if i.is_terminator or _acts(facts, i)]
    while work:
        instr = work.pop()
        if instr not in live:
            live.add(instr)
            work += [o for o in instr.operands if isinstance(o, Instruction)]
    return live


def _acts(facts: ReverseFacts, instr: Instruction) -> bool:
    if instr.opcode == "store":
        return bool(instr.volatile or instr.ordering or not facts.unit.discarded(instr.operands[1]))
    if instr.opcode == "load":
        return bool(instr.volatile or instr.ordering)
    if instr.opcode == "call":
        return not pure_call(instr)
    return instr.traits.has("writes")


def at_one_level(facts: ReverseFacts) -> set[Instruction]:
    """Pure calls whose result is only used in the loop they stand in: there, computing them again costs as much as
    computing them once."""
    found = {i for b in facts.cfg.rpo for i in b.instructions if i.opcode == "call" and pure_call(i)}
    for block in facts.cfg.rpo:
        level = facts.loops.of(block)
        for instr in block.instructions:
            for operand in instr.operands:
                if isinstance(operand, Instruction) and operand in found and facts.level(operand) is not level:
                    found.discard(operand)
    return found
