"""Sums of a loop whose order is nobody's business: the accumulator is only added to, and read after the loop.

Where the value of the primal is not returned (programs R), such a sum may be taken in any order, which lets the loop
vectorise; the result differs by rounding only, most often for the better (partial sums are shorter). A sum that is
looked at inside the loop, as in compensated summation, keeps its order.
"""

from __future__ import annotations

from irgrad.engine.analyses.loops import Loops
from irgrad.engine.ir.model import Function, Instruction, Value

ADDITIONS = ("llvm.fmuladd.", "llvm.fma.")


def free_sums(fn: Function, loops: Loops) -> set[Instruction]:
    """The additions that may be reordered: each takes the accumulator's phi and gives its next value, both used for
    nothing else."""
    counts: dict[Value, int] = {}
    for instr in fn.instructions():
        for operand in instr.operands:
            counts[operand] = counts.get(operand, 0) + 1
    found: set[Instruction] = set()
    for loop in loops.all:
        latch = loop.latch
        if latch is None:
            continue
        for phi in loop.header.phis:
            if not phi.type.is_fp or counts.get(phi, 0) != 1:
                continue
            chain = _chain(phi, phi.operands[phi.blocks.index(latch)], counts, loop)
            found.update(chain)
    return found


def _chain(phi: Instruction, last: Value, counts: dict[Value, int], loop: object) -> list[Instruction]:
    """Additions from the phi to its next value; empty unless nothing else reads anything in between."""
    chain: list[Instruction] = []
    value = last
    while value is not phi:
        if not isinstance(value, Instruction) or not loop.contains(value.block):  # type: ignore[attr-defined]
            return []
        outside = 1 if value is last else 0  # the last one may also be read by the phi at the exit
        if counts.get(value, 0) > 1 + outside:
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
