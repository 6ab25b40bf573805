"""Reductions that may be reassociated: sums of a loop whose accumulator is only added to, and read after the loop.

Where the value of the primal is not returned (`pullback`), such a sum may be taken in any order, which lets the loop
vectorise; the result differs by rounding only, most often for the better (partial sums are shorter). A sum that is
looked at inside the loop, as in compensated summation, keeps its order.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.uses import Uses, uses_of

ADDITIONS = ("llvm.fmuladd.", "llvm.fma.")


def free_sums(fn: Function, loops: Loops) -> set[Instruction]:
    """The additions that may be reordered: each takes the accumulator's phi and gives its next value, both used for
    nothing else."""
    uses = uses_of(fn.blocks)
    found: set[Instruction] = set()
    for loop in loops.all:
        latch = loop.latch
        if latch is None:
            continue
        for phi in loop.header.phis:
            if not phi.type.is_fp or len(uses.get(phi, ())) != 1:
                continue
            chain = _chain(phi, phi.operands[phi.blocks.index(latch)], uses, loop)
            found.update(chain)
    return found


def _chain(phi: Instruction, last: Value, uses: Uses, loop: object) -> list[Instruction]:
    """Additions from the phi to its next value; empty unless nothing else reads anything in between."""
    chain: list[Instruction] = []
    value = last
    while value is not phi:
        if not isinstance(value, Instruction) or not loop.contains(value.block):  # type: ignore[attr-defined]
            return []
        outside = 1 if value is last else 0  # the last one may also be read by the phi at the exit
        if len(uses.get(value, ())) > 1 + outside:
            return []
        accumulated = _accumulated(value, phi, chain)
        if accumulated is None:
            return []
        chain.append(value)
        if len(chain) > 64:
            return []
        value = accumulated
    return chain


def _accumulated(value: Instruction, phi: Instruction, chain: list[Instruction]) -> Value | None:
    """The operand of an addition through which the accumulator comes."""
    del chain
    if value.opcode in ("fadd", "fsub"):
        candidates = value.operands if value.opcode == "fadd" else value.operands[:1]
        for operand in candidates:
            if operand is phi or (isinstance(operand, Instruction) and _adds(operand) and operand.block is value.block):
                return operand
        return None
    if _adds(value):
        return value.operands[2]
    return None


def _adds(value: Instruction) -> bool:
    if value.opcode in ("fadd", "fsub"):
        return True
    return value.opcode == "call" and (value.callee_name or "").startswith(ADDITIONS)
