"""Freedom where the caller of a derivative is not told what a value of the primal flows into: sums in any order, and
functions of the math library approximated, so that their loops vectorise."""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution import reductions
from irgrad.engine.analyses.memory import delivered
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.rules.lookup import find

__all__ = ["approximate_calls", "free_sums"]


def free_sums(unit: Unit, fn: Function) -> set[Instruction]:
    """The sums of a function that may be taken in any order: what they give only flows into derivatives."""
    found = reductions.free_sums(fn, get(Loops, fn)) if unit.flags and not unit.request.rounding else set()
    return found - unit.get(_told) if found else found


def approximate_calls(unit: Unit) -> None:
    """Marks the calls of functions that the vector library has (`afn`) whose values only flow into derivatives."""
    if not unit.flags or unit.request.rounding:
        return
    found = [instr for fn in unit.pointers.functions for instr in fn.instructions() if _vectorisable(instr)]
    told = unit.get(_told) if found else set()
    for instr in found:
        if instr not in told:
            instr.flags = tuple(dict.fromkeys((*instr.flags, "afn")))


def _vectorisable(instr: Instruction) -> bool:
    match = find(instr.callee_name or "") if instr.is_call and instr.type.is_fp else None
    return match is not None and match.row.libmvec


def _told(unit: Unit) -> set[Value]:
    """The values that may flow into what the caller is told: they are bitwise those of the function."""
    arguments = (unit.pointers.object_of.get(unit.root.args[i]) for i in unit.request.discard)
    return delivered.delivered(unit.pointers, sum(1 << obj.index for obj in arguments if obj is not None))
