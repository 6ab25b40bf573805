"""Cells whose content a loop carries in a register, and stores only in some iterations.

    *out = 0;
    while (n-- > 0) {
        if (skipped(n)) continue;
        *out += term(n);
    }

LLVM keeps the sum in a register, but it stores the cell wherever the source does: it does not see that the memory may
be written in the other iterations too. In reverse each store takes the cell's adjoint and clears it, so that iterations
depend on each other through it. Memory that is stored in front of the loop may be stored behind it: where the value in
the register is what the cell holds at each place of the loop, the last one is enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstFloat, Function, Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.normalise.loop_memory import LoopMemory, keep_of_metadata, leaves_at_end

__all__ = ["end_cells", "may_end"]


def may_end(fn: Function) -> bool:
    """Whether a loop of the function has stores that might become one behind it."""
    loops = get(Loops, fn)
    return any(_cells(loop, loops) for loop in loops.all)


def end_cells(memory: LoopMemory) -> int:
    """Have cells whose content is in a register stored behind their loops. Returns how many stores left."""
    count = 0
    for loop in memory.loops.all:  # outermost first
        for stores in _cells(loop, memory.loops):
            last = _Cell(memory, loop, stores).last
            if last is not None:
                _end(stores, last, loop)
                count += len(stores)
    return count


def _cells(loop: Loop, loops: Loops) -> list[list[Instruction]]:
    """The stores to each address of the loop's outside."""
    if loop.preheader is None or not leaves_at_end(loop, loops):
        return []
    found: dict[Value, list[Instruction]] = {}
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.opcode == "store":
                found.setdefault(instr.operands[1], []).append(instr)
    kinds = {phi.type for phi in loop.header.phis}
    return [stores for address, stores in found.items() if _plain(stores, kinds)
            and not (isinstance(address, Instruction) and loop.contains(address.block))]  # fmt: skip


def _plain(stores: list[Instruction], kinds: set[Type]) -> bool:
    stored = {store.operands[0].type for store in stores}
    return len(stored) == 1 and stored <= kinds and not any(store.volatile or store.ordering for store in stores)


class _Cell:
    """A cell in a loop. last: the value that it holds at the loop's end, None where that is not known."""

    def __init__(self, memory: LoopMemory, loop: Loop, stores: list[Instruction]) -> None:
        self._memory, self._loop, self._loops = memory, loop, memory.loops
        # the last of each block
        self._stores: dict[Block | None, Value] = {store.block: store.operands[0] for store in stores}
        self._address = stores[0].operands[1]
        self._objects = memory.pointers.expand(memory.pointers.of(self._address))
        self.last: Value | None = None
        if all(memory.alone(store, loop, reads=True, beside=stores) for store in stores):
            first = self._in_front(stores[0].operands[0])
            if first is not None:
                self.last = next((end for phi in loop.header.phis if (end := self._followed(phi, first))), None)

    def _in_front(self, like: Value) -> Value | None:
        """What the cell holds when the loop begins, where it was stored."""
        block, writes = self._loop.preheader, self._memory.pointers.instr_writes
        while block is not None:
            for instr in reversed(block.instructions):
                if instr.opcode == "store" and instr.operands[1] is self._address:
                    return None if instr.volatile or instr.operands[0].type is not like.type else instr.operands[0]
                if writes(instr) & self._objects:
                    return None
            above = self._loops.dom.idom(block)
            between = [] if above is None else self._between(above, block)
            if any(writes(instr) & self._objects for one in between for instr in one.instructions):
                return None
            block = above
        return None

    def _between(self, above: Block, block: Block) -> Iterable[Block]:
        """The blocks on ways from one block to another that it dominates; both left out, unless a way comes back."""
        found: dict[Block, None] = {}
        ahead = [block]
        while ahead:
            for pred in self._loops.cfg.preds(ahead.pop()):
                if pred is not above and pred not in found:
                    found[pred] = None
                    ahead.append(pred)
        return found

    def _followed(self, header: Instruction, first: Value) -> Value | None:
        """The cell's content at the end, if it is `header` when an iteration begins."""
        loop, preheader = self._loop, self._loop.preheader
        if header.type is not first.type or not _same(_from(header, preheader), first):
            return None
        preds = self._loops.cfg.preds
        ends: dict[Block, Value] = {}
        assumed = {loop.header: header}
        for block in loop.blocks:
            known = {pred: ends[pred] for pred in preds(block) if pred in ends}
            held: Value = header if block is loop.header else next(iter(known.values()))
            inner = self._loops.of(block) if block is not loop.header and len(known) < len(preds(block)) else None
            changes = inner is not None and any(inner.contains(b) for b in self._stores)
            if changes or any(not _same(value, held) for value in known.values()):
                phis = (phi for phi in block.phis if phi.type is header.type)
                phi = next((p for p in phis if all(_same(_from(p, pred), v) for pred, v in known.items())), None)
                if phi is None:
                    return None
                held = assumed[block] = phi
            ends[block] = self._stores.get(block, held)
        sound = all(_same(_from(phi, pred), ends[pred]) for block, phi in assumed.items() for pred in preds(block)
                    if pred in ends)  # fmt: skip
        assert loop.latch is not None
        return ends[loop.latch] if sound else None


def _from(phi: Instruction, pred: Block | None) -> Value:
    return next(value for value, block in zip(phi.operands, phi.blocks, strict=True) if block is pred)


def _same(a: Value, b: Value) -> bool:
    a, b = _original(a), _original(b)
    if isinstance(a, ConstFloat) and isinstance(b, ConstFloat):
        return a.type is b.type and a.bits == b.bits
    return a is b


def _original(value: Value) -> Value:
    """The value that a phi of one value, behind a loop, stands for."""
    while isinstance(value, Instruction) and value.opcode == "phi" and len(value.operands) == 1:
        value = value.operands[0]
    return value


def _end(stores: list[Instruction], last: Value, loop: Loop) -> None:
    after, store = loop.exits[0], stores[-1]
    assert loop.latch is not None
    for one in stores:
        assert one.block is not None
        one.block.instructions.remove(one)
    keep_of_metadata(store)
    inside = isinstance(last, Instruction) and loop.contains(last.block)
    store.operands[0] = Builder(after, 0).phi(last.type, [(last, loop.latch)]) if inside else last
    place = next(n for n, instr in enumerate(after.instructions) if instr.opcode != "phi")
    Builder(after, place).insert(store)
