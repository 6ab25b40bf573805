"""Products of sums, written as sums of products: subscripts of arrays in three and more dimensions.

`(i * ny + j) * nz + k` is no linear form over the counters, as nobody computed `ny * nz`. Where it is asked how far
accesses reach, nothing of the function runs, so that products of known numbers may be computed in front of the loops
there: `i * (ny * nz) + j * nz + k`, the same modulo 2**64.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses

__all__ = ["distribute"]

_DEEP = 6  # sums and products within each other


def distribute(fn: Function) -> None:
    """Write products in loops, of a sum and of a number that is known before the outermost one, as sums, where they
    are no linear forms."""
    loops, induction = get(Loops, fn), Induction(fn)
    written: dict[Value, Value] = {}
    for block in loops.cfg.rpo:
        top = next((loop for loop in loops.top if loop.contains(block)), None)
        if top is None or top.preheader is None:
            continue
        for instr in [i for i in block.instructions if i.opcode == "mul" and i.type is ty.I64]:
            if instr in induction.form(instr).terms:
                products = _Products(top, top.preheader, Builder(block, block.instructions.index(instr)), written)
                made = products.of(instr)
                if made is not None:
                    written[instr] = made
    replace_uses(fn, written)
    fn.analyses = None


class _Products:
    """Writes a product in front of it. written: products by what they were"""

    def __init__(self, top: Loop, before: Block, b: Builder, written: dict[Value, Value]) -> None:
        self.top = top
        self.b = b
        self.before = Builder(before, len(before.instructions) - 1)
        self.written = written

    def of(self, instr: Instruction) -> Value | None:
        """Another value for a product; None where none of its factors is known before the loop."""
        for factor, by in (instr.operands, instr.operands[::-1]):
            if self._known(by):
                return self._times(factor, by, _DEEP)
        return None

    def _known(self, value: Value) -> bool:
        return not isinstance(value, Instruction) or not self.top.contains(value.block)

    def _times(self, value: Value, by: Value, deep: int) -> Value:
        value = self.written.get(value, value)
        if self._known(value):
            return self.before.mul(value, by, ())
        assert isinstance(value, Instruction)
        if deep and value.opcode in ("add", "sub"):
            one, two = (self._times(part, by, deep - 1) for part in value.operands)
            return self.b.binary(value.opcode, one, two)
        if deep and value.opcode == "mul":
            for part, other in (value.operands, value.operands[::-1]):
                if self._known(other):
                    return self._times(part, self.before.mul(other, by, ()), deep - 1)
        return self.b.mul(value, by, ())
