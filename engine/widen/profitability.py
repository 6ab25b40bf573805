"""Whether lanes pay where addresses vary: each lane then loads and stores by itself, which costs more than it does in a
loop over samples, and only what is computed beside it gains.

Measured with 16 lanes of doubles: a sum of w[i] * table[index[i]] takes twice as long as sample by sample, an
interpolation in a table with one exponential and one sine 0.4 of the time, a walk over a picture with bilinear
interpolation (5 operations for each load) 0.15.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.differentiate.primitives.rows import libm_cost
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.widen.refusals import refuse
from irgrad.engine.widen.uniformity import Uniformity

__all__ = ["check_worth"]

OPERATIONS = 4
"""Operations for each access by lane from which lanes are faster."""
_TRIPS = 32  # of a loop whose trip count is not known


def check_worth(fn: Function, facts: Uniformity) -> None:
    """Raises Unsupported, naming an access, if accesses by lane are most of what the function does."""
    loops = get(Loops, fn)
    work, accesses = 0, 0
    first: Instruction | None = None
    for block in fn.blocks:
        weight = _TRIPS ** min(loops.depth(block), 4)
        for instr in block.instructions:
            if instr.opcode in ("load", "store"):
                if instr.operands[-1] in facts.varying:
                    accesses += weight
                    first = first or instr
            elif instr in facts.varying and not instr.type.is_ptr and instr.opcode != "phi":
                work += weight * _cost(instr)
    if first is not None and work < OPERATIONS * accesses:
        raise refuse(f"addresses vary between samples, and there are {work // accesses} operations for each load or "
                     f"store at one: lanes pay from {OPERATIONS}", first,
                     "`width=4` makes lanes nevertheless")


def _cost(instr: Instruction) -> int:
    return libm_cost(instr) if instr.opcode == "call" else instr.traits.cost
