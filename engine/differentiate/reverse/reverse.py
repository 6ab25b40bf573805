"""Reverse mode: the primal sweep, then its control flow run backwards, each instruction handing its adjoint to its
operands.

    combined   void f.rev(A a, A a', ...)                   both sweeps in one function (roots, in normal form)
    split      {T, T', tape} f.aug(A a, A a', arena)        the primal sweep, and
               {A a^...} f.rev(A a, A a', T t^, tape)       the reverse sweep (callees; roots: see `taped.py`)

(x': shadow pointer; x^: adjoint of a scalar). Method: reverse accumulation on the optimised SSA form with a taped
control flow; the adjoint of an SSA value lives in an accumulator that is read and cleared where the value was
defined. Accumulators of values that live inside one block never exist in memory; LLVM's mem2reg turns the others into
SSA values.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.differentiate.reverse.augment import Augment
from irgrad.engine.differentiate.reverse.backward import Backward
from irgrad.engine.differentiate.reverse.neighbours import Neighbours
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.chunk_tape import tape_of
from irgrad.engine.differentiate.tape.rematerialise import Recall
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.differentiate.tape.storage import Storage
from irgrad.engine.ir.builder import zero
from irgrad.engine.ir.model import Block, Function, Instruction, Value, const_float


class Reverse(ReverseState):
    """Generates the reverse derivative of one function."""

    def __init__(self, unit: Unit, fn: Function, abi: Abi, primal: Function, reverse: Function) -> None:
        super().__init__(unit, fn, abi, reverse, split=primal is not reverse)
        self.on_tape = tape_of(self) if self.caller_tape else None
        self.taped = self.on_tape
        self.primal = Augment(self, primal)
        self.sweep = self.primal
        self.storage = Storage(self)
        self.recall = Recall(self)
        self.flow = Backward(self)
        self.neighbours = Neighbours(self, self.plan.schedule)

    # -- whole -----------------------------------------------------------------------------------------------

    def generate(self) -> Reverse:
        """Fill the target function(s)."""
        self.primal.generate(self.cfg.rpo)
        self.flow.generate()
        if self.unit.flags:
            primal = set(self.sweep.blocks.values())
            blocks = [b for b in self.target.blocks if b not in primal]
            share_reciprocals(blocks)
            keep_quotients(self.target, blocks)
        return self


def share_reciprocals(blocks: Iterable[Block]) -> None:
    """Several divisions by one square root become one and products with it. The root of a normal number has a
    reciprocal that neither overflows nor underflows, which is not so for other divisors."""
    for block in blocks:
        by_root: dict[Value, list[Instruction]] = {}
        for instr in block.instructions:
            below = instr.operands[1] if instr.opcode == "fdiv" else None
            if isinstance(below, Instruction) and (below.callee_name or "").startswith("llvm.sqrt."):
                by_root.setdefault(below, []).append(instr)
        for root, quotients in by_root.items():
            if len(quotients) < 2:
                continue
            first = quotients[0]
            one = Instruction("fdiv", root.type, [const_float(root.type, 1.0), root], flags=first.flags)
            one.block = block
            block.instructions.insert(block.instructions.index(first), one)
            for quotient in quotients:
                quotient.opcode, quotient.operands = "fmul", [quotient.operands[0], one]


def keep_quotients(fn: Function, blocks: Iterable[Block]) -> None:
    """Divisions outside of innermost loops stay where they are. LLVM makes (a / b) * c, reassociated, a product and a
    quotient, in the loop of c even where that of a and b is in front of it (measured: 1.1 on a log-sum-exp)."""
    quotients = [i for block in blocks for i in block.instructions if i.opcode == "fdiv" and "reassoc" in i.flags]
    loops = get(Loops, fn) if quotients else None
    for quotient in quotients:
        assert loops is not None and quotient.block is not None
        loop = loops.of(quotient.block)
        if loop is None or loop.children:
            quotient.flags = tuple(flag for flag in quotient.flags if flag != "reassoc")


__all__ = ["Reverse", "zero"]
