"""Steps that work on the rows of the tape, as `levels.py` finds them: what the two sweeps do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.shared.copying import clean_call
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.schedule.loop_schedule import Levels

if TYPE_CHECKING:
    from irgrad.engine.differentiate.tape.places import Flat

LARGE = 1 << 20  # bytes of rows that stay in a cache
APART = 2  # every 2**APART-th row is kept where they do not


class Rows:
    """Emits the levels of one flat array in the primal sweep."""

    def __init__(self, owner: ReverseState, levels: Levels, flat: Flat) -> None:
        self.owner = owner
        self.levels = levels
        self.flat = flat
        steps, inner, blocks = levels.steps, levels.inner, owner.sweep.blocks
        storage = owner.storage
        flat.lay_out(self, -(-levels.low // 16) * 16)
        self.mask: Value = ConstInt(ty.I64, 0)  # of a row's number; what is left is 0 in rows that are kept
        if levels.result is not None:
            before = [("end", blocks[steps.preheader])]  # type: ignore[index]
            storage.save(("mask", flat.key), ty.I64, None, lambda: self.mask, before)  # type: ignore[arg-type]
            owner.flow.again[inner] = self
        storage.ends.setdefault(id(blocks[steps.preheader]), []).append(self._before)  # type: ignore[index]
        storage.starts.setdefault(id(blocks[steps.header]), []).append((0, self._places))
        storage.ends.setdefault(id(blocks[inner.preheader]), []).append(self._edges)  # type: ignore[index]
        storage.starts.setdefault(id(blocks[steps.exits[0]]), []).append((-(1 << 16), self._after))
        nowhere = [zero(ty.PTR), ConstInt(ty.I64, -levels.low)]
        self.places = [Instruction("getelementptr", ty.PTR, list(nowhere), elem=ty.I8) for _ in range(2)]
        self._redirect()

    def _redirect(self) -> None:
        """Let the loads and stores of a step go to the places of two rows."""
        values = self.owner.sweep.values
        moved = dict(zip((values[self.levels.read], values[self.levels.stored]), self.places, strict=True))
        for block in self.levels.steps.blocks:
            for instr in self.owner.sweep.blocks[block].instructions:
                if instr.opcode != "phi":
                    instr.operands = [moved.get(operand, operand) for operand in instr.operands]

    def _count(self) -> Value:
        """Cells that a step stores."""
        return self.owner.storage.dims[self.levels.steps, self.levels.inner]

    def _row(self, b: Builder, number: Value, cell: Value) -> Value:
        """Address of a cell."""
        cells = b.add(self._count(), ConstInt(ty.I64, self.levels.span))
        assert self.flat.pointer is not None
        place = self.place(b, number, self.mask)
        return b.gep(self.flat.type, self.flat.pointer, b.add(b.mul(place, cells), cell))

    def place(self, b: Builder, number: Value, mask: Value) -> Value:
        """Where a row is: those that are kept lie behind those that share memory."""
        if self.levels.result is None:
            return number
        part = b.binary("and", number, mask)
        shift = b.binary("and", mask, ConstInt(ty.I64, APART))
        kept = b.add(mask, b.binary("lshr", number, shift))
        return b.select(b.icmp("eq", part, ConstInt(ty.I64, 0)), kept, b.sub(part, ConstInt(ty.I64, 1)))

    def rows(self, b: Builder, steps: Value, row: Value) -> Value:
        """How many rows to make room for, of this many cells each: one more than steps, where all are kept."""
        one = ConstInt(ty.I64, 1)
        every = b.add(steps, one, ("nuw", "nsw"))
        if self.levels.result is None:
            return every
        size = b.mul(b.mul(every, row), ConstInt(ty.I64, self.levels.size))
        large = b.icmp("ugt", size, ConstInt(ty.I64, LARGE))
        self.mask = b.select(large, ConstInt(ty.I64, (1 << APART) - 1), ConstInt(ty.I64, 0))
        fewer = b.add(b.binary("lshr", every, ConstInt(ty.I64, APART)), ConstInt(ty.I64, 1 << APART))
        return b.select(large, fewer, every)

    def _step(self) -> Value:
        return self.owner.storage.counter(self.levels.steps)

    def _last(self, b: Builder) -> Value:
        """Number of the last step."""
        return b.sub(self.owner.storage.dims[self.levels.steps, self.levels.steps], ConstInt(ty.I64, 1))

    def _copy(self, b: Builder, target: Value, source: Value, cells: Value, *more: Value) -> None:
        """Copy cells, none where steps do nothing or one of `more` does not hold."""
        size, none = b.mul(cells, ConstInt(ty.I64, self.levels.size)), ConstInt(ty.I64, 0)
        tests = [(self.owner.sweep.value(test), outcome) for test, outcome in self.levels.guards]
        for test, outcome in [*tests, *((test, True) for test in more)]:
            size = b.select(test, size, none) if outcome else b.select(test, none, size)
        kind = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
        b.call(self.owner.unit.declare("llvm.memcpy.p0.p0.i64", kind), [target, source, size, ConstInt(ty.I1, 0)])

    def _before(self, b: Builder) -> None:
        """Row 0."""
        start = self.owner.sweep.value(self.owner.entering(self.levels.read))
        cells = b.add(self._count(), ConstInt(ty.I64, self.levels.span))
        first = self._row(b, ConstInt(ty.I64, 0), ConstInt(ty.I64, 0))
        self._copy(b, first, b.gep(ty.I8, start, self.levels.low, flags=()), cells)

    def _places(self, b: Builder) -> None:
        """What a step takes for the buffers: rows t and t + 1, less the way to the first cell."""
        following = b.add(self._step(), ConstInt(ty.I64, 1))
        for place, number in zip(self.places, (self._step(), following), strict=True):
            place.operands[0] = self._row(b, number, ConstInt(ty.I64, 0))
            b.insert(place)

    def _edges(self, b: Builder) -> None:
        """The cells of row t + 1 that step t does not store. The first step finds them in the buffer that it stores to,
        which is only known to have them when a second step reads them."""
        levels, one = self.levels, ConstInt(ty.I64, 1)
        if not levels.span:
            return
        step, origin = self._step(), ConstInt(ty.I64, 0)
        start = self.owner.sweep.value(self.owner.entering(levels.stored))
        here = self._row(b, step, origin)
        several = b.icmp("sgt", self._last(b), origin)
        begin = b.select(several, b.gep(ty.I8, start, levels.low, flags=()), here)
        source = b.select(b.icmp("eq", step, origin), begin, self._row(b, b.sub(step, one), origin))
        target = self._row(b, b.add(step, one), origin)
        for k in range(levels.span):
            cell = ConstInt(ty.I64, k) if k < levels.first else b.add(self._count(), ConstInt(ty.I64, k))
            value = b.load(self.flat.type, b.gep(self.flat.type, source, cell), align=levels.align)
            b.store(value, b.gep(self.flat.type, target, cell), align=levels.align)

    def _after(self, b: Builder) -> None:
        """What the buffers hold after the last step."""
        levels, last, origin = self.levels, self._last(b), ConstInt(ty.I64, 0)
        read, stored = (self.owner.sweep.value(phi) for phi in (levels.read, levels.stored))
        cells = b.add(self._count(), ConstInt(ty.I64, levels.span))
        several = b.icmp("sgt", last, origin)
        self._copy(b, b.gep(ty.I8, read, levels.low, flags=()), self._row(b, last, origin), cells, several)
        first = ConstInt(ty.I64, levels.first)
        source = self._row(b, b.add(last, ConstInt(ty.I64, 1)), first)
        offset = levels.low + levels.first * levels.size
        self._copy(b, b.gep(ty.I8, stored, offset, flags=()), source, self._count())

    # -- the reverse sweep -----------------------------------------------------------------------------------

    def fill_again(self, block: Block, new_block: Callable[[str], Block]) -> None:
        """In front of the reverse of a step, which goes on where `block` leads to: where it is the last of four, the
        rows that share memory."""
        owner, follow = self.owner, block.instructions.pop().blocks[0]
        b = owner.emit_in(block)
        owner.recall.new_block()
        recall, levels, one = owner.recall, self.levels, ConstInt(ty.I64, 1)
        mask, now = recall.load(("mask", self.flat.key)), owner.iteration(levels.steps)
        count, steps = (owner.storage.extent(levels.steps, loop, recall.load) for loop in (levels.inner, levels.steps))
        pointer = recall.load(("array", self.flat.key))
        values = {v: recall.value(v) for v in self.levels.outside()}
        part = b.binary("and", now, mask)
        here = b.binary("or", b.icmp("eq", part, mask), b.icmp("eq", now, b.sub(steps, one)))
        first = b.select(here, b.sub(now, part), now)
        outer, inner, done = new_block("r.again"), new_block("r.again.cell"), new_block("r.again.done")
        cells = b.add(count, ConstInt(ty.I64, levels.span))
        b.cond_br(b.icmp("slt", first, now), outer, follow)
        b = Builder(outer)
        step = b.phi(ty.I64, [(first, block)])
        places = [self.place(b, number, mask) for number in (step, b.add(step, one))]
        start, target = (b.gep(self.flat.type, pointer, b.mul(place, cells)) for place in places)
        b.br(inner)
        b = Builder(inner)
        at = b.phi(ty.I64, [(ConstInt(ty.I64, 0), outer)])
        value = self._compute(b, start, at, values)
        b.store(value, b.gep(self.flat.type, target, b.add(at, ConstInt(ty.I64, levels.first))), align=levels.align)
        following = b.add(at, one)
        at.operands.append(following)
        at.blocks.append(inner)
        b.cond_br(b.icmp("eq", following, count), done, inner)
        b = Builder(done)
        step.operands.append(b.add(step, one))
        step.blocks.append(done)
        b.cond_br(b.icmp("eq", step.operands[1], now), follow, outer)

    def _compute(self, b: Builder, row: Value, at: Value, values: dict[Value, Value]) -> Value:
        """A cell of the next row."""
        values = dict(values)
        for instr in self.levels.order():
            shift = self.levels.cells.get(instr)
            if shift is not None:
                place = b.gep(self.flat.type, row, b.add(at, ConstInt(ty.I64, shift)))
                values[instr] = b.load(self.flat.type, place, align=self.levels.align)
                continue
            operands = [values[o] for o in (instr.args if instr.is_call else instr.operands)]
            if instr.is_call:
                operands.append(instr.callee)
            call = clean_call(instr.call)
            values[instr] = b.insert(Instruction(instr.opcode, instr.type, operands, flags=instr.flags, call=call))
        return values[self.levels.result]  # type: ignore[index]
