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

Choice = tuple[str, Value, Value]
"""A predicate and two values: the first where it holds of them, else the second."""

__all__ = ["approximate_calls", "free_choices", "free_sums"]


def free_sums(unit: Unit, fn: Function) -> set[Instruction]:
    """The sums of a function that may be taken in any order: what they give only flows into derivatives."""
    found = reductions.free_sums(fn, get(Loops, fn)) if unit.flags and not unit.request.rounding else set()
    return found - unit.get(_told) if found else found


def free_choices(fn: Function, sums: set[Instruction]) -> dict[Instruction, Choice]:
    """How the least or greatest of two values may be chosen of which one is such a sum: the value, not which of the two
    it is, so that of +0 and -0 either will do, as the sum's own sign of zero is nobody's business."""
    found = {instr: choice for instr in fn.instructions() if (choice := _choice(instr)) is not None}
    return {instr: found[instr] for instr in found if any(_of_sum(o, sums) for o in instr.operands[1:])}


def _choice(instr: Instruction) -> Choice | None:
    """`d >= best ? best : d` as `best < d ? best : d`: the second of two that are equal, and where one is NaN, is one
    machine instruction in place of four that wait for one another. None for what chooses otherwise."""
    if instr.opcode != "select" or not instr.type.is_float:
        return None
    test, then, other = instr.operands
    if not isinstance(test, Instruction) or test.opcode != "fcmp" or test.pred is None:
        return None
    unordered, relation = test.pred[0] == "u", test.pred[1:]
    if relation not in ("lt", "le", "gt", "ge") or test.operands not in ([then, other], [other, then]):
        return None
    least = (relation[0] == "l") == (test.operands[0] is then)  # which of two unequal ones is chosen
    first, second = (other, then) if unordered else (then, other)  # the second where one is NaN
    return "olt" if least else "ogt", first, second


def _of_sum(value: Value, sums: set[Instruction]) -> bool:
    """Whether a value is a sum, or the phi of one behind its loops."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if item in sums:
            return True
        if isinstance(item, Instruction) and item.opcode == "phi" and item not in seen:
            seen.add(item)
            stack += item.operands
    return False


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
