"""Iterations of a loop left out unless they are marked beforehand.

    preheader:  marks = calloc(count + 1) ; for (i ...) marks[number of i] = 1      where there are fewer than count
    header:     if (!marks[iteration]) goto latch ; ...
    latch:      the counters' next values, the question whether to go on

Part of `demand.py`, and worth what that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.counters import advance, following, only_counters
from irgrad.engine.analyses.evolution.earlier import Earlier, Numbers
from irgrad.engine.analyses.evolution.trips import Expr
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import copied, declare

__all__ = ["Marks"]

ONE, NONE = ConstInt(ty.I64, 1), ConstInt(ty.I64, 0)


class Marks:
    """One loop with a preheader, a single latch, which is its only exit, and no value that is used behind it.

    count:   how often it comes back to its beginning
    numbers: which of its iterations are needed
    """

    def __init__(
        self, module: Module, fn: Function, loop: Loop, count: Expr, earlier: Earlier, numbers: Sequence[Numbers]
    ) -> None:  # fmt: skip
        assert loop.preheader is not None and loop.latch is not None
        self.module, self.fn, self.loop = module, fn, loop
        self.before, self.header, self.latch, self.exit = loop.preheader, loop.header, loop.latch, loop.exits[0]
        self.count, self.earlier, self.numbers = count, earlier, numbers

    def possible(self) -> bool:
        """Whether the counters' next values and the exit's condition depend on nothing else than the counters."""
        return only_counters(self.loop)

    # -- the change ----------------------------------------------------------------------------------------------------

    def skip(self) -> None:
        """Change the function."""
        before, memory, marks, mask = self._mark()
        body, latch = self._block(self.header), self._block(self.latch)
        phis = self.header.phis
        body.instructions = self.header.instructions[len(phis) :]
        self.header.instructions = list(phis)
        for instr in body.instructions:
            instr.block = body
        self._rename(body.successors, self.header, body)
        last = body if self.latch is self.header else self.latch
        b = Builder(latch)
        number = Instruction("phi", ty.I64, [NONE], blocks=[before])
        self._count_on(b, last, latch, number, body)
        self.header.instructions.append(number)
        number.block = self.header
        b = Builder(self.header)
        mark = b.load(ty.I8, b.gep(ty.I8, marks, b.binary("and", number, mask), flags=()), align=1)
        b.cond_br(b.icmp("eq", mark, ConstInt(ty.I8, 0)), latch, body)
        at = len(self.exit.phis)
        Builder(self.exit, at=at).call(declare(self.module, "free", ty.VOID, (ty.PTR,)), [memory])

    def _block(self, after: Block) -> Block:
        new = Block()
        new.function = self.fn
        self.fn.blocks.insert(self.fn.blocks.index(after) + 1, new)
        return new

    @staticmethod
    def _rename(blocks: Sequence[Block], old: Block, new: Block) -> None:
        for block in dict.fromkeys(blocks):
            for phi in block.phis:
                phi.blocks = [new if b is old else b for b in phi.blocks]

    def _count_on(self, b: Builder, last: Block, latch: Block, number: Instruction, body: Block) -> None:
        """The new latch: the counters go on from what they were at the beginning of the iteration."""
        old = last.terminator
        table: dict[Value, Value] = {}
        advance(b, self.loop, [*following(self.loop, last), old.operands[0]], table, body)
        for phi in self.header.phis:
            at = phi.blocks.index(last)
            phi.operands[at], phi.blocks[at] = table.get(phi.operands[at], phi.operands[at]), latch
        number.operands.append(b.add(number, ONE, ("nuw",)))
        number.blocks.append(latch)
        again = copied(old, [table.get(o, o) for o in old.operands])
        again.blocks = list(old.blocks)
        b.insert(again)
        last.instructions.pop()
        Builder(last).br(latch)
        self._rename([self.exit], last, latch)

    def _mark(self) -> tuple[Block, Value, Value, Value]:
        """The new preheader, memory to be freed, the marks, and the bits of an iteration's number that count: none
        where all run."""
        entry = Builder(self.fn.entry, at=0)
        one = entry.alloca(ty.I8, align=1)
        entry.store(ConstInt(ty.I8, 1), one, align=1)
        start = self.before.instructions.pop()
        b = Builder(self.before)
        count = b.add(self.earlier.emit(b, self.count), ONE, ())
        held = [self.earlier.holds(b, n) for n in self.numbers]
        amounts = [b.add(self.earlier.emit(b, n.count), ONE, ()) for n in self.numbers]
        few: Value = ConstInt(ty.I1, 1)
        for runs, amount in zip(held, amounts, strict=True):
            fewer = b.icmp("ult", b.select(runs, amount, NONE), count)
            few = b.select(few, fewer, ConstInt(ty.I1, 0))
        room, joined = self._block(self.before), Block()
        b.cond_br(few, room, joined)
        b = Builder(room)
        make = declare(self.module, "calloc", ty.PTR, (ty.I64, ty.I64))
        memory = b.call(make, [b.add(count, ONE, ()), ONE])
        block = self._block(room)
        b.cond_br(b.icmp("eq", memory, ConstZero(ty.PTR)), joined, block)
        for numbers, runs, amount in zip(self.numbers, held, amounts, strict=True):
            block = self._write(block, numbers, runs, amount, count, memory)
        Builder(block).br(joined)
        self._place(joined, block)
        b = Builder(joined)
        ways: list[tuple[Value, Block]] = [(ConstZero(ty.PTR), self.before), (ConstZero(ty.PTR), room), (memory, block)]
        held_memory = b.phi(ty.PTR, ways)
        marks = b.phi(ty.PTR, [(one, self.before), (one, room), (memory, block)])
        mask = b.phi(ty.I64, [(NONE, self.before), (NONE, room), (ConstInt(ty.I64, -1), block)])
        b.insert(start)
        self._rename([self.header], self.before, joined)
        return joined, held_memory, marks, mask

    def _place(self, block: Block, after: Block) -> None:
        block.function = self.fn
        self.fn.blocks.insert(self.fn.blocks.index(after) + 1, block)

    def _write(
        self, block: Block, numbers: Numbers, runs: Value, amount: Value, count: Value, memory: Value
    ) -> Block:  # fmt: skip
        """The marks of what one loop reads; the block behind it."""
        here = self._block(block)
        after = self._block(here)
        Builder(block).cond_br(runs, here, after)
        b = Builder(here)
        iteration = b.phi(ty.I64, [(NONE, block)])
        number = self.earlier.number(b, numbers, iteration)
        place = b.select(b.icmp("ult", number, count), number, count)  # others are marked behind the last one
        b.store(ConstInt(ty.I8, 1), b.gep(ty.I8, memory, place), align=1)
        step = b.add(iteration, ONE, ("nuw",))
        b.cond_br(b.icmp("eq", step, amount), after, here)
        iteration.operands.append(step)
        iteration.blocks.append(here)
        return after
