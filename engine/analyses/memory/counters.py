"""Phis that a loop moves by a constant each turn: how far the test at the loop's end lets them get.

Limits and first values are sets themselves (`j < i` with i from 1 to 6; a reverse sweep that counts down from there).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import NamedTuple

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.memory.strided_sets import Offsets, make
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.predicates import INVERSE

__all__ = ["Counters", "reach"]

_UP = ("ult", "slt", "ule", "sle")
_DOWN = ("ugt", "sgt", "uge", "sge")


class _Test(NamedTuple):
    """The loop goes on while `phi + lead pred limit` holds, and then adds `step`; `first`: where the phi begins."""

    first: Value
    step: int
    lead: int
    pred: str
    limit: Value


class Counters:
    """value: the set of an integer so far, None for one not reached; displacement: that of a getelementptr."""

    def __init__(
        self,
        value: Callable[[Value], Offsets | None],
        displacement: Callable[[Sequence[Value], ty.Type, tuple[str, ...]], Offsets | None],
    ) -> None:
        self._value = value
        self._displacement = displacement
        self._decided: dict[tuple[Block, Block], list[tuple[Instruction, bool]]] = {}

    def values(self, phi: Instruction) -> Offsets | None:
        """What a phi gets to be by the test of its own loop; None where that has no bounds."""
        test = self._test(phi)
        if test is None:
            return None
        first, limit = self._value(test.first), self._value(test.limit)
        if first is None or limit is None:
            return first
        ends = reach(first, test.step, test.lead, test.pred, limit)
        if ends is None:
            return None
        apart = gcd(test.step, *(stride for stride, _ in first.terms))
        lowest = ends[0] if test.step > 0 else ends[0] + (ends[1] - ends[0]) % apart
        return make(lowest, [(apart, (ends[1] - lowest) // apart)], False)

    def runs(self, header: Block) -> int | None:
        """How often a loop's header runs at most; None where that is not known."""
        return min((n for phi in header.phis if (n := self._runs(phi)) is not None), default=None)

    def _runs(self, phi: Instruction) -> int | None:
        test = self._test(phi)
        if test is None:
            return None
        first, limit = self._value(test.first), self._value(test.limit)
        if first is None or limit is None:
            return 1  # so far
        ends = reach(first, test.step, test.lead, test.pred, limit)
        return None if ends is None else (ends[1] - ends[0]) // abs(test.step) + 1

    def _test(self, phi: Instruction) -> _Test | None:
        if not phi.type.is_int or len(phi.operands) != 2 or phi.block is None:
            return None
        for i in (0, 1):
            step = self.step(phi.operands[i], phi)
            if not step:
                continue
            edge = phi.blocks[i], phi.block
            if edge not in self._decided:
                self._decided[edge] = _tests(*edge)
            for branch, stays in self._decided[edge]:
                test = branch.operands[0]
                if not isinstance(test, Instruction) or test.opcode != "icmp":
                    continue
                lead = self.step(test.operands[0], phi)
                if lead is not None:
                    pred = test.pred if stays else INVERSE[test.pred]
                    return _Test(phi.operands[1 - i], step, lead, pred, test.operands[1])
        return None

    def step(self, value: Value, phi: Instruction) -> int | None:
        """`value` = `phi` + constant along a chain of additions: that constant."""
        total = 0
        for _ in range(64):
            if value is phi:
                return total
            if not isinstance(value, Instruction):
                return None
            if value.opcode != "phi":
                distance = self._distance(value)
                if distance is None:
                    return None
                total += distance
            elif len(value.operands) != 1:
                return None
            value = value.operands[0]
        return None

    def _distance(self, instr: Instruction) -> int | None:
        if instr.opcode == "getelementptr" and instr.elem is not None:
            distance = self._displacement(instr.operands, instr.elem, ())
            return distance.start if distance is not None and distance.exact else None
        constant = instr.operands[-1]
        if instr.opcode not in ("add", "sub") or not isinstance(constant, ConstInt):
            return None
        return -constant.value if instr.opcode == "sub" else constant.value


def _tests(latch: Block, header: Block) -> list[tuple[Instruction, bool]]:
    """The branches out of a loop that each of its turns takes, the last one first, and whether the loop goes on if the
    condition holds."""
    if header.function is None:
        return []
    loops = get(Loops, header.function)
    loop, found = loops.of(header), []
    if loop is None or loop.header is not header or not loop.contains(latch):
        return []
    block: Block | None = latch
    while block is not None:
        branch = block.terminator
        if branch.opcode == "br" and len(branch.blocks) == 2:
            goes_on = [loop.contains(to) for to in branch.blocks]
            if goes_on[0] != goes_on[1]:
                found.append((branch, goes_on[0]))
        block = None if block is header else loops.dom.idom(block)
    return found


def reach(first: Offsets, step: int, lead: int, pred: str, limit: Offsets) -> tuple[int, int] | None:
    """(least, greatest) value of a phi that begins in `first` and is moved by `step` as long as `phi + lead pred
    limit` holds; None where that has no bounds."""
    ends, limits = _ends(first), _ends(limit)
    if ends is None or limits is None:
        return None
    (least, greatest), (low, high) = ends, limits
    if pred[0] == "u" and min(least + lead, low) < 0:
        return None
    if pred == "ne":
        one = least == greatest and low == high and (low - lead - least) % step == 0
        if not (one or abs(step) == 1):
            return None
        if step > 0:
            return (least, high - lead) if greatest + lead <= low else None
        return (low - lead, greatest) if least + lead >= high else None
    strict = pred[1:] in ("lt", "gt")
    if step > 0 and pred in _UP and least + lead >= 0:
        return least, max(greatest, high - strict - lead + step)
    if step < 0 and pred in _DOWN:
        lowest = min(least, low + strict - lead + step)
        return None if pred[0] == "u" and lowest < 0 else (lowest, greatest)
    return None


def _ends(where: Offsets) -> tuple[int, int] | None:
    if where.below or where.stride:
        return None
    return where.start, where.start + sum(stride * (count or 0) for stride, count in where.terms)
