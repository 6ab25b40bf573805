"""What an operation makes of sets of offsets; the shapes of address computations."""

from __future__ import annotations

from math import gcd

from irgrad.engine.analyses.memory import strided_sets as off
from irgrad.engine.analyses.memory.strided_sets import NATURAL, TOP, ZERO, Offsets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import having

_RESTS = ("urem", "srem")
_SHRINKS = having("shrinks")


def destination(gep: Instruction) -> Value | None:
    """q, for p + (q - p)."""
    base, *by = gep.operands
    if len(by) != 1 or gep.elem is not ty.I8 or not isinstance(by[0], Instruction) or by[0].opcode != "sub":
        return None
    ends = [o.operands[0] for o in by[0].operands if isinstance(o, Instruction) and o.opcode == "ptrtoint"]
    return ends[0] if len(ends) == 2 and ends[1] is base else None


def rounded_to(gep: Instruction) -> int:
    """16, for p + ((p & -16) - p); else 0."""
    base, *by = gep.operands
    if len(by) != 1 or gep.elem is not ty.I8 or not isinstance(by[0], Instruction) or by[0].opcode != "sub":
        return 0
    masked, number = by[0].operands
    if not isinstance(masked, Instruction) or masked.opcode != "and" or masked.operands[0] is not number:
        return 0
    mask, of_base = masked.operands[1], isinstance(number, Instruction) and number.opcode == "ptrtoint"
    if not isinstance(mask, ConstInt) or not of_base or number.operands[0] is not base:  # type: ignore[attr-defined]
        return 0
    return -mask.value if mask.value < 0 and mask.value & (-mask.value - 1) == 0 else 0


def natural(places: Offsets) -> bool:
    """Whether all of them are zero or more."""
    return not places.below and places.start >= 0


def binary(instr: Instruction, a: Offsets, b: Offsets) -> Offsets:
    """The results of an operation with two operands."""
    op = instr.opcode
    if op == "add" or (op == "or" and "disjoint" in instr.flags):
        return off.add(a, b)
    if op == "sub" and (step := _rounded_down(instr)):
        return off.make(0, [(abs(step), None)], step < 0)
    if op == "sub":
        return off.add(a, off.scale(b, -1))
    if op == "mul":
        return off.multiply(a, b)
    if op == "shl" and b.exact and 0 <= b.start < 64:
        return off.scale(a, 1 << b.start)
    if op == "and" and b.exact:
        if b.start >= 0:
            low = b.start & -b.start
            return off.make(0, [(low, b.start // low)], False) if low else ZERO
        return off.make(0, [(-(b.start) & b.start or 1, None)], a.below or a.start < 0)
    if op == "urem" and b.exact and b.start > 0:
        return off.make(0, [(1, b.start - 1)], False)
    if op == "srem" and b.exact and b.start:
        most = abs(b.start) - 1
        return off.make(0 if natural(a) else -most, [(1, most if natural(a) else 2 * most)], False)
    if op == "lshr" or (op in _SHRINKS and natural(a) and (op != "sdiv" or natural(b))):
        return NATURAL
    return TOP


def _rounded_down(difference: Instruction) -> int:
    """48, for x - x % 48 of a number without sign, -48 of one with a sign; else 0."""
    whole, rest = difference.operands
    if not isinstance(rest, Instruction) or rest.opcode not in _RESTS or rest.operands[0] is not whole:
        return 0
    by = rest.operands[1]
    return (by.value if rest.opcode == "urem" else -by.value) if isinstance(by, ConstInt) and by.value > 0 else 0


def at_most(places: Offsets, limit: int) -> Offsets:
    """The smaller one of a number and of any of the places, none of which is negative: a place, or the number."""
    step = gcd(limit - places.start, *(stride for stride, _ in places.terms))
    return off.make(limit % step, [(step, limit // step)], False) if step else Offsets(limit)
