"""Branches that vary between samples become selects, where both sides are short and without side effects.

Where that is not enough, branches that do not vary are flattened as well: one of them may stand in a side of one that
does.
"""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.ir.model import Block, Function, Instruction
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.normalise.short_branches import flatten_at, join, predecessors
from irgrad.engine.widen.uniformity import Uniformity, math_intrinsic
from irgrad.rules.effects import facts as effects_of

__all__ = ["flatten", "pure"]

_COST = 200
"""The most that both sides of a branch may cost together: an operation is 1, a call 20."""
_LOW = 40
"""The same for branches that do not vary."""


def flatten(fn: Function, analyse: Callable[[], Uniformity]) -> None:
    """Flatten what can be flattened, innermost branches first. Changes `fn`."""
    while True:
        gone, _ = join(fn.blocks)
        fn.blocks[:] = [b for b in fn.blocks if b not in gone]
        facts = analyse()
        branches = [b for b in fn.blocks if b.terminator.opcode == "br" and b.terminator.operands]
        varying = [b for b in branches if b.terminator.operands[0] in facts.varying]
        if not varying:
            return
        others = [b for b in branches if b not in varying]
        tried = ((b, _COST) for b in varying), ((b, _LOW) for b in others)
        preds = predecessors(fn.blocks)
        sides = next((s for some in tried for b, limit in some if (s := flatten_at(b, preds, limit, _cost))), [])
        if not sides:
            return
        fn.blocks[:] = [b for b in fn.blocks if b not in sides]


def _cost(block: Block) -> int:
    total = 0
    for instr in block.instructions[:-1]:
        if instr.opcode in SPECULATABLE:
            total += 1
        elif instr.opcode == "call" and pure(instr):
            total += 20
        else:
            return _COST + 1
    return total


def pure(instr: Instruction) -> bool:
    """Whether a call neither reads nor writes memory and may be made for samples that do not need it."""
    name = instr.callee_name or ""
    if math_intrinsic(name):
        return True
    known = effects_of(name) if name and not name.startswith("llvm.") else None
    return known is not None and known.kind == "pure" and not any(v.type.is_ptr for v in instr.args)
