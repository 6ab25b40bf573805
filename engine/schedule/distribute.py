"""Loops of a wide derivative cut in two, so that the primal's part of them vectorises.

LLVM vectorises no loop that has vectors in it already: with W lanes in registers, `exp` and `sqrt` of the primal would
run one element at a time, though without the lanes they run eight at a time. But the primal never depends on a shadow,
and no access to the one ever touches the memory of the other. So a loop may run all of its scalar part first, and its
lanes after that:

    for i in 0..n:  s = f(x[i]) ; v += s * x'[i]        for c in 0..n by k:
                                                            for i in c..c + k:  buffer[i - c] = f(x[i])
                                                            for i in c..c + k:  v += buffer[i - c] * x'[i]

Done for innermost counted loops of one block in which the scalar part is worth it and carries no float from one
iteration to the next. Addresses and counters are computed in both halves, other numbers go through buffers on the
stack. Buffers of 64 make the halves long, so that neither waits for its last vectors. But where the lanes of one
element fill a cache line, their half waits for memory: then a half is as short as a vector of scalars, and the
processor, which has some hundred instructions in flight, computes the next scalars meanwhile (measured, 16 lanes of a
map's reverse sweep: 23 us with 8 elements, 25, 29 and 30 with 16, 32 and 64; with 4 lanes 64 are best). Only for
derivatives whose shadows are floats and pointers, each a value of its own (the attribute `irgrad-lanes` says so): there
a scalar access is always one of the primal's.

Without this, `benchmarks.batch expsin` takes 3.2 and 2.3 times as long with 4 and 16 directions, `nbody` 1.9 and 1.5.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.differentiate.primitives.rows import libm_cost, pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    ConstInt,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import CHOICES, PURE, having
from irgrad.engine.ir.rewrite import copied, replace_uses

__all__ = ["CHUNK", "distribute"]

CHUNK = 64
LINE = 64  # bytes of a cache line
WORTH = 10  # what the scalar part must save, in flops-like units, beyond two for each number that is buffered
ADDRESSES = having("subscript") | {"phi"}
ALLOWED = PURE | CHOICES | {"load", "store"}


def distribute(module: Module) -> int:
    """Cut the loops of all functions that are worth it; the number of loops that were cut."""
    cuts = 0
    for fn in module.functions.values():
        if not fn.blocks:
            continue
        cfg = get(Cfg, fn)
        loops = get(Loops, fn)
        if any(_wide_block(loop.header) for loop in loops.all):
            cuts += _distribute(fn, cfg, loops)
    return cuts


def _wide_block(block: Block) -> bool:
    return any(i.type.is_vector for i in block.instructions)


def _distribute(fn: Function, cfg: Cfg, loops: Loops) -> int:
    induction = Induction(fn, cfg, loops)
    chosen: list[_Cut] = []
    for loop in loops.all:
        count = induction.trip_count(loop) if len(loop.blocks) == 1 and loop.preheader is not None else None
        if count is None or (count.const is not None and count.const < CHUNK // 4):
            continue
        cut = _Cut(fn, loop)
        if cut.worth():
            b = Builder(loop.preheader, at=len(loop.preheader.instructions) - 1)  # type: ignore[union-attr,arg-type]
            cut.count = b.add(count.emit(b), ConstInt(ty.I64, 1), ())
            chosen.append(cut)
    for cut in chosen:  # all counts exist before the first loop changes
        cut.apply()
    return len(chosen)


class _Cut:
    """One loop of a single block: what of it is wide, and its two halves."""

    def __init__(self, fn: Function, loop: Loop) -> None:
        self.fn = fn
        self.loop = loop
        self.block = loop.header
        self.count: Value = ConstInt(ty.I64, 0)
        self.wide = self._wide()
        self.shared = self._addresses()
        self.buffered = self._buffered()
        self.chunk = self._chunk()

    def _chunk(self) -> int:
        """How many elements go through the buffers at a time."""
        lanes = [v.type for v in self.wide if isinstance(v.type, ty.VectorType) and v.type.elem.is_float]
        filled = any(ty.size_of(t) >= LINE for t in lanes)
        return LINE // min(ty.size_of(t.elem) for t in lanes) if filled else CHUNK

    def _inside(self, value: Value) -> bool:
        return isinstance(value, Instruction) and value.block is self.block

    def _wide(self) -> set[Value]:
        """Values that depend on lanes."""
        wide: set[Value] = set()
        before = -1
        while before != len(wide):
            before = len(wide)
            for instr in self.block.instructions:
                if instr.type.is_vector or any(o.type.is_vector or o in wide for o in instr.operands):
                    wide.add(instr)
        return wide

    def _addresses(self) -> set[Value]:
        """Counters and addresses, which either half computes for itself."""
        found: set[Value] = {
            i for i in self.block.instructions
            if i.opcode in ADDRESSES and (i.type.is_int or i.type.is_ptr) and i not in self.wide
        }  # fmt: skip
        before = -1
        while before != len(found):
            before = len(found)
            latched = {i: self._next(i) for i in found if isinstance(i, Instruction) and i.opcode == "phi"}
            for instr in list(found):
                assert isinstance(instr, Instruction)
                needed = [latched[instr]] if instr in latched else instr.operands
                if any(self._inside(o) and o not in found for o in needed):
                    found.discard(instr)
        return found

    def _next(self, phi: Instruction) -> Value:
        return phi.operands[phi.blocks.index(self.block)]

    def _buffered(self) -> list[Instruction]:
        """Scalars that the lanes read and that are not recomputed."""
        found: dict[Instruction, None] = {}
        for instr in self.block.instructions:
            if instr in self.wide:
                operands = [self._next(instr)] if instr.opcode == "phi" else instr.operands
                for o in operands:
                    if isinstance(o, Instruction) and self._inside(o) and o not in self.wide and o not in self.shared:
                        found[o] = None
        return list(found)

    def worth(self) -> bool:
        """Whether the loop may be cut, and the vectorised scalar part saves more than the buffers cost."""
        saved = 0
        for instr in self.block.instructions[:-1]:
            if instr.volatile or instr.ordering:
                return False
            if instr.opcode == "call":
                if not pure_call(instr):
                    return False
            elif instr.opcode not in ALLOWED:
                return False
            if instr not in self.wide:
                if instr.opcode == "phi" and not (instr.type.is_int or instr.type.is_ptr):
                    return False
                saved += _saving(instr)
        last = self.block.terminator
        if not self.wide or last.opcode != "br" or last in self.wide or len(self.loop.exits) != 1:
            return False
        if any(i.opcode == "phi" and i not in self.wide and i not in self.shared for i in self.block.phis):
            return False
        if any(not (b.type.is_float or b.type.is_int or b.type.is_ptr) for b in self.buffered):
            return False
        return saved - 2 * len(self.buffered) >= WORTH

    # -- the two halves ------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Replace the loop."""
        head, first, middle, second, tail = (Block() for _ in range(5))
        for block in (head, first, middle, second, tail):
            block.function = self.fn
        (exit_,) = self.loop.exits
        before = self.loop.preheader
        assert before is not None
        phis = self.block.phis
        outer: dict[Value, Instruction] = {}
        b = Builder(head)
        done = b.phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
        for phi in phis:
            entering = phi.operands[phi.blocks.index(before)]
            outer[phi] = b.phi(phi.type, [(entering, before)])
        rest = b.sub(self.count, done, ("nuw",))
        some = b.select(b.icmp("ult", rest, ConstInt(ty.I64, self.chunk)), rest, ConstInt(ty.I64, self.chunk))
        b.br(first)
        buffers = {value: self._buffer(value) for value in self.buffered}
        scalars = self._first(head, first, middle, outer, some, buffers)
        Builder(middle).br(second)
        lanes = self._second(middle, second, tail, outer, some, buffers)
        b = Builder(tail)
        ended = b.add(done, some, ("nuw", "nsw"))
        b.cond_br(b.icmp("eq", ended, self.count), exit_, head)
        done.operands.append(ended)
        done.blocks.append(tail)
        for phi in phis:
            latched = self._next(phi)
            table = lanes if phi in self.wide else scalars
            outer[phi].operands.append(table.get(latched, latched))
            outer[phi].blocks.append(tail)
        before.terminator.blocks = [head if t is self.block else t for t in before.terminator.blocks]
        for phi in exit_.phis:
            phi.blocks = [tail if t is self.block else t for t in phi.blocks]
        at = self.fn.blocks.index(self.block)
        self.fn.blocks[at : at + 1] = [head, first, middle, second, tail]
        final: dict[Value, Value] = {
            i: (lanes if i in self.wide else scalars)[i] for i in self.block.instructions[:-1] if i.type is not ty.VOID
        }
        replace_uses(self.fn, final)

    def _buffer(self, value: Instruction) -> Instruction:
        kind = ty.I8 if value.type is ty.I1 else value.type
        room = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=ty.array(self.chunk, kind), align=64)
        room.block = self.fn.entry
        self.fn.entry.instructions.insert(0, room)
        return room

    def _first(
        self, before: Block, here: Block, after: Block, outer: dict[Value, Instruction], some: Value,
        buffers: dict[Instruction, Instruction],
    ) -> dict[Value, Value]:  # fmt: skip
        """The scalar half."""
        b = Builder(here)
        new: dict[Value, Instruction] = {}
        number = b.phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
        scalar_phis = [p for p in self.block.phis if p not in self.wide]
        for phi in scalar_phis:
            new[phi] = b.phi(phi.type, [(outer[phi], before)])
        table: dict[Value, Value] = {**new}
        for instr in self.block.instructions[len(self.block.phis) : -1]:
            if instr not in self.wide:
                table[instr] = b.insert(copied(instr, [table.get(o, o) for o in instr.operands]))
        for value, room in buffers.items():
            kept = table[value]
            if kept.type is ty.I1:
                kept = b.cast("zext", kept, ty.I8)
            b.store(kept, b.gep(kept.type, room, number), align=ty.align_of(kept.type))
        self._close(b, number, some, here, after)
        for phi in scalar_phis:
            latched = self._next(phi)
            new[phi].operands.append(table.get(latched, latched))
            new[phi].blocks.append(here)
        return table

    def _second(
        self, before: Block, here: Block, after: Block, outer: dict[Value, Instruction], some: Value,
        buffers: dict[Instruction, Instruction],
    ) -> dict[Value, Value]:  # fmt: skip
        """The lanes, with the counters and addresses that they need."""
        b = Builder(here)
        new: dict[Value, Instruction] = {}
        number = b.phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
        phis = [p for p in self.block.phis if p in self.wide or p in self.shared]
        for phi in phis:
            new[phi] = b.phi(phi.type, [(outer[phi], before)])
        table: dict[Value, Value] = {**new}
        for value, room in buffers.items():
            kind = ty.I8 if value.type is ty.I1 else value.type
            kept = b.load(kind, b.gep(kind, room, number), align=ty.align_of(kind))
            table[value] = b.cast("trunc", kept, ty.I1) if value.type is ty.I1 else kept
        for instr in self.block.instructions[len(self.block.phis) : -1]:
            if instr in self.wide or instr in self.shared:
                table[instr] = b.insert(copied(instr, [table.get(o, o) for o in instr.operands]))
        self._close(b, number, some, here, after)
        for phi in phis:
            latched = self._next(phi)
            new[phi].operands.append(table.get(latched, latched))
            new[phi].blocks.append(here)
        return table

    @staticmethod
    def _close(b: Builder, number: Instruction, some: Value, here: Block, after: Block) -> None:
        step = b.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        b.cond_br(b.icmp("eq", step, some), after, here)
        number.operands.append(step)
        number.blocks.append(here)


def _saving(instr: Instruction) -> int:
    """Flops-like units that one scalar costs."""
    if instr.opcode == "call":
        return libm_cost(instr)
    return instr.traits.cost if instr.type.is_float else 0
