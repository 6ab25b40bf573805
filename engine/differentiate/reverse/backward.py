"""The control flow of the reverse sweep: blocks and loops run backwards, and the final assembly of both sweeps."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.memory.receivers import name_record
from irgrad.engine.differentiate.layout.leaves import has_float, zero_of
from irgrad.engine.differentiate.layout.shadow_memory import PRIMAL
from irgrad.engine.differentiate.reverse import adjoints
from irgrad.engine.differentiate.shadow.zero_adjoint_skip import Idle, ask
from irgrad.engine.differentiate.tape.state import FilledAgain, ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Constant, ConstInt, Instruction, Value

if TYPE_CHECKING:
    pass


class Backward:
    """Emits the reverse blocks of one function and puts everything in place."""

    def __init__(self, owner: ReverseState) -> None:
        self.owner = owner
        self.blocks: dict[Block, Block] = {}
        self.hooks: list[tuple[Block, Loop, bool]] = []
        self.idle = Idle(owner)
        self.again: dict[Loop, FilledAgain] = {}

    def generate(self) -> None:
        """Reverse blocks from the exit to the entry, then the assembly."""
        owner = self.owner
        self._counters()
        prologue = Block("r.start")
        self.cotangent: Value | None = None if owner.split or not owner.abi.ret_adjoint else owner.target.args[-1]
        if owner.split:
            prologue.function = owner.target
            owner.target.blocks.append(prologue)
            self._bind_reverse_arguments()
            if owner.taped is not None:
                owner.taped.begin(self._new_block("r.local"))
        for block in reversed(owner.cfg.rpo):
            if block in owner.live:
                self.blocks[block] = self._new_block(f"r.{block.name or ''}")
        for block in reversed(owner.cfg.rpo):
            if block in owner.live:
                self._block(block)
        self._assemble(prologue)

    def _new_block(self, name: str) -> Block:
        block = Block(name)
        block.function = self.owner.target
        self.owner.target.blocks.append(block)
        return block

    def _bind_reverse_arguments(self) -> None:
        owner = self.owner
        if owner.taped is not None:
            self.tape, self.cotangent = owner.taped.bind_reverse(), owner.taped.cotangent
            return
        new = iter(owner.target.args)
        for i, old in enumerate(owner.fn.args):
            owner.reverse_values[old] = next(new)
            if owner.abi.shadow[i]:
                owner.reverse_shadows[old] = next(new)
        self.cotangent = next(new) if owner.abi.ret_adjoint else None
        self.tape = next(new)

    def _counters(self) -> None:
        """Iteration numbers of all loops in the primal sweep."""
        owner = self.owner
        for loop in owner.loops.all:
            header, latch = owner.sweep.blocks[loop.header], owner.sweep.blocks[loop.latches[0]]
            entry = owner.sweep.blocks[loop.preheader]  # type: ignore[index]
            phi = Instruction("phi", ty.I64, [ConstInt(ty.I64, 0)], blocks=[entry, latch], name=None)
            phi.block = header
            step = Instruction("add", ty.I64, [phi, ConstInt(ty.I64, 1)], flags=("nuw", "nsw"))
            step.block = latch
            phi.operands.append(step)
            header.instructions.insert(0, phi)
            latch.instructions.insert(len(latch.instructions) - 1, step)
            owner.storage.counters[loop] = phi

    # -- one block -------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        owner = self.owner
        owner.emit_in(self.blocks[block])
        owner.recall.new_block()
        for instr in reversed(block.instructions):
            if instr.opcode == "phi":
                break
            if instr.opcode == "ret":
                if instr.operands and self.cotangent is not None:
                    owner.give(instr.operands[0], self.cotangent)
                continue
            dbg = instr.metadata.get("dbg")
            owner.b.metadata = {"dbg": dbg} if dbg else {}
            adjoints.reverse_instruction(owner, instr)
        phis = []
        for phi in block.phis:
            if owner.active(phi):
                amount = self.take_phi(phi)
                if amount is not None and not owner.neighbours.give(phi, amount):
                    phis.append((phi, amount))
        loop = owner.loops.of(block)
        if loop is not None and loop.header is block:
            owner.neighbours.finish(loop)
        preds = owner.cfg.preds(block)
        if not preds:
            self._finish()
        elif len(preds) == 1 or (not phis and owner.one_way(block, preds)):
            self._edge(block, preds[0], phis)
        else:
            self._dispatch(block, preds, phis)

    def take_phi(self, phi: Instruction) -> Value | None:
        """Adjoint of a phi; statically zero when nothing can have been added."""
        return self.owner.take(phi)

    def _edge(self, block: Block, pred: Block, phis: list[tuple[Instruction, Value]]) -> None:
        """Go back from `block` to `pred` at the insertion point."""
        owner = self.owner
        here = owner.loops.of(block)
        if here is not None and here.header is block and not here.contains(pred):
            owner.neighbours.flush(here)
        left, before = owner.left_by(block, pred)
        if left and self.idle.often(left[-1], phis):
            self._jump_over(left[-1], phis)
        for loop in reversed(left):
            count = self._count(loop)
            up = owner.plan.schedule.counts_up(loop)
            owner.b.store(count, owner.limit_slot(loop) if up else owner.iteration_slot(loop))
            if up:
                owner.b.store(ConstInt(ty.I64, 0), owner.iteration_slot(loop))
            self._hook(loop, entering=True)
            self._start_from_last(loop)
        if here is not None and here.header is block and here.contains(pred):
            step = owner.b.add if owner.plan.schedule.counts_up(here) else owner.b.sub
            owner.b.store(step(owner.iteration(here), ConstInt(ty.I64, 1), ("nuw", "nsw")), owner.iteration_slot(here))
            self._hook(here, entering=False)
            self._step_back(here, shadows=False)
            self._step_back(here, shadows=True)
        for phi, amount in phis:
            for value, source in zip(phi.operands, phi.blocks, strict=True):
                if source is pred:
                    self._give_over_edge(value, amount)
                    break
        owner.b.br(self.blocks[before])

    def _start_from_last(self, loop: Loop) -> None:
        """What is stepped back (`reversible.py`) begins with what the last iteration began with."""
        owner = self.owner
        exits: list[tuple[str, object]] = [("start", owner.sweep.blocks[e]) for e in loop.exits]
        for shadow, find in ((False, owner.sweep.value), (True, owner.sweep.shadow)):
            for reversal in owner.plan.stepped(loop, shadows=shadow):
                phi = reversal.phi
                key, slot = ("end", ("shadow", phi) if shadow else phi), owner.stepped_slot(phi, shadow=shadow)
                owner.storage.save(key, slot.elem, loop.parent, partial(find, phi), exits)  # type: ignore[arg-type]
                owner.b.store(owner.recall.load(key), slot)

    def _step_back(self, loop: Loop, *, shadows: bool) -> None:
        owner, reversals = self.owner, self.owner.plan.stepped(loop, shadows=shadows)
        slots = {r.phi: owner.stepped_slot(r.phi, shadow=shadows) for r in reversals}
        now = {phi: owner.b.load(slot.elem, slot) for phi, slot in slots.items()}  # type: ignore[arg-type]
        for reversal in reversals:
            memory = owner.unit.memory if shadows else PRIMAL
            before = reversal.undo(owner.b, now[reversal.after], owner.recall.value, memory)
            owner.b.store(before, slots[reversal.phi])

    def _jump_over(self, loop: Loop, phis: list[tuple[Instruction, Value]]) -> None:
        """Go on behind the reverse loop (at what preceded the loop) when the adjoints that enter it are all zero."""
        owner, b = self.owner, self.owner.b
        idle = ask(owner.unit, b, phis[0][1])
        for _, amount in phis[1:]:
            idle = b.binary("and", idle, ask(owner.unit, b, amount))
        enter = self._new_block("r.enter")
        b.cond_br(idle, self.blocks[loop.preheader], enter)  # type: ignore[index]
        owner.emit_in(enter)
        owner.recall.new_block()

    def _give_over_edge(self, value: Value, amount: Value) -> None:
        if not isinstance(value, Constant):
            self.owner.give(value, amount)

    def _hook(self, loop: Loop, *, entering: bool) -> None:
        """A block of its own in which the records of `loop` are taken back, filled at the end."""
        owner = self.owner
        block = self._new_block("r.pop")
        owner.b.br(block)
        self.hooks.append((block, loop, entering))
        follow = self._new_block("r.back")
        Builder(block).br(follow)
        owner.emit_in(follow)
        owner.recall.new_block()

    def _count(self, loop: Loop) -> Value:
        """Number of the last iteration of a loop that the reverse sweep enters."""
        owner = self.owner
        constant = owner.constant_trip(loop)
        if constant is not None:
            return ConstInt(ty.I64, constant)
        top = owner.top(loop)
        if top is not None:
            owner.storage.dimension(top, loop)
            extent = owner.storage.extent(top, loop, owner.recall.load)
            return owner.b.sub(extent, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        key: Hashable = ("count", loop)
        exits = [("start", owner.sweep.blocks[e]) for e in loop.exits]
        owner.storage.save(key, ty.I64, loop.parent, lambda: owner.storage.counters[loop], exits)  # type: ignore[arg-type]
        return owner.recall.load(key)

    # -- merges ----------------------------------------------------------------------------------------------

    def _dispatch(self, block: Block, preds: list[Block], phis: list[tuple[Instruction, Value]]) -> None:
        owner = self.owner
        targets = [self._new_block(f"r.{block.name or ''}.to.{p.name or ''}") for p in preds]
        loop = owner.loops.of(block)
        if loop is not None and loop.header is block:
            outside = [i for i, p in enumerate(preds) if not loop.contains(p)]
            up = owner.plan.schedule.counts_up(loop)
            end = owner.b.load(ty.I64, owner.limit_slot(loop)) if up else ConstInt(ty.I64, 0)
            last = owner.b.icmp("eq", owner.iteration(loop), end)
            owner.b.cond_br(last, targets[outside[0]], targets[1 - outside[0]])
        else:
            found = owner.branch_of(block, preds)
            if found is not None:
                cond, true = found
                owner.b.cond_br(owner.recall.value(cond), targets[true], targets[1 - true])
            else:
                self._by_number(block, preds, targets)
        for pred, target in zip(preds, targets, strict=True):
            owner.emit_in(target)
            owner.recall.new_block()
            self._edge(block, pred, phis)

    def _by_number(self, block: Block, preds: list[Block], targets: list[Block]) -> None:
        """Record in the primal sweep which predecessor was left, as a phi of numbers."""
        owner = self.owner
        kind = ty.I8 if len(preds) < 128 else ty.I32
        new = owner.sweep.blocks[block]
        phi = Instruction("phi", kind, [])
        for i, pred in enumerate(preds):
            for _ in range(pred.successors.count(block)):
                phi.operands.append(ConstInt(kind, i))
                phi.blocks.append(owner.sweep.blocks[pred])
        phi.block = new
        new.instructions.insert(0, phi)
        key = ("from", block)
        owner.storage.save(key, kind, owner.loops.of(block), lambda: phi, [("start", new)])
        number = owner.recall.load(key)
        cases = [(ConstInt(kind, i), t) for i, t in enumerate(targets)]
        if len(cases) == 2:
            owner.b.cond_br(owner.b.icmp("eq", number, ConstInt(kind, 0)), targets[0], targets[1])
        else:
            owner.b.switch(number, targets[0], cases[1:])

    # -- ends ------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """The entry is reached: return the adjoints of the arguments."""
        owner = self.owner
        values = []
        for i, arg in enumerate(owner.fn.args):
            if owner.abi.adjoint[i]:
                values.append(owner.take(arg) or zero_of(owner.unit.wide(arg.type)))
        self.last, self.results = owner.b, values
        if owner.split:
            self._return(owner.taped.arena if owner.taped is not None else None)

    def _return(self, arena: Value | None) -> None:
        """Give the arena back, and return the adjoints."""
        b, result, lent = self.last, self.owner.target.ftype.ret, self.owner.lent
        if arena is not None and (self.owner.needs_arena or not lent):
            b.call(self.owner.unit.runtime(f"irgrad.tape.{'reuse' if lent else 'finish'}"), [arena])
        if result is ty.VOID:
            b.ret()
        else:
            b.ret(b.aggregate(result, self.results))

    def _assemble(self, prologue: Block) -> None:
        owner = self.owner
        storage = owner.storage
        for block, loop, entering in self.hooks:
            if ("last", loop) in storage.slots:
                self._fill_hook(block, loop, entering)
            if entering and loop in self.again:
                self.again[loop].fill_again(block, self._new_block)
        self._close_primal()
        for old in owner.cfg.rpo:
            self._weave(owner.sweep.blocks[old])
        for loop in storage.records:
            self._record_back_edge(loop)
        if owner.split:
            b = Builder(prologue)
            for alloca in owner.stacks[False]:
                b.insert(alloca)
            for cell in owner.zeroed:
                b.store(zero_of(cell.elem), cell)  # type: ignore[arg-type]
            if owner.taped is not None and owner.taped.start is not None:
                owner.taped.unpack(b, self.tape)
                b.br(owner.taped.start)
                b = Builder(owner.taped.start)
            else:
                storage.unpack(b, self.tape)
            if owner.exit is not None:
                b.br(self.blocks[owner.exit])
            else:
                b.unreachable()
        elif owner.exit is not None:
            self._return(owner.arena)
        self._entry(owner.sweep.blocks[owner.cfg.rpo[0]])

    def _fill_hook(self, block: Block, loop: Loop, entering: bool) -> None:
        owner = self.owner
        owner.emit_in(block, at=0)
        owner.recall.new_block()
        if entering:
            last = owner.recall.load(("record", loop))
            owner.b.store(last, owner.storage.slots[("last", loop)].reverse)
        owner.storage.pop(owner.b, loop)

    def _close_primal(self) -> None:
        """End the primal sweep: into the reverse sweep, or with the results and the tape."""
        owner = self.owner
        if owner.exit is None:
            return
        b = Builder(owner.sweep.blocks[owner.exit])
        if not owner.split:
            b.br(self.blocks[owner.exit])
            return
        if owner.taped is not None:
            owner.taped.close(b)
            return
        value = owner.exit.terminator.operands
        parts = [owner.sweep.value(value[0])] if value else []
        if owner.abi.ret_shadow:
            parts.append(owner.sweep.shadow(value[0]))
        block = b.block
        held = Builder(Block())
        held.block = block
        record = owner.storage.pack(b)
        name_record(owner.unit.module, record, self.tape, owner.sweep.target.name)
        parts.append(record)
        b.ret(b.aggregate(owner.sweep.target.ftype.ret, parts))

    def _weave(self, block: Block) -> None:
        """Put what storage asked for between the instructions of a copied block."""
        storage = self.owner.storage
        starts = sorted(storage.starts.get(id(block), []), key=lambda item: item[0])
        ends = storage.ends.get(id(block), [])
        old = block.instructions
        if not starts and not ends and not any(id(i) in storage.after for i in old):
            return
        block.instructions = []
        b = Builder(block)
        phis = 0
        while phis < len(old) and old[phis].opcode == "phi":
            block.instructions.append(old[phis])
            phis += 1
        for _, emit in starts:
            emit(b)
        for instr in old[phis:]:
            if instr.is_terminator:
                for emit in ends:
                    emit(b)
            block.instructions.append(instr)
            for emit in storage.after.get(id(instr), ()):
                emit(b)

    def _record_back_edge(self, loop: Loop) -> None:
        """Push the record of an iteration on the way back to the header."""
        owner = self.owner
        header, latch = owner.sweep.blocks[loop.header], owner.sweep.blocks[loop.latches[0]]
        back = Block(f"p.{loop.header.name or ''}.back")
        back.function = owner.sweep.target
        owner.sweep.target.blocks.append(back)
        b = Builder(back)
        owner.storage.push(b, loop)
        b.br(header)
        latch.terminator.blocks = [back if t is header else t for t in latch.terminator.blocks]
        for phi in header.phis:
            phi.blocks = [back if s is latch else s for s in phi.blocks]

    def _entry(self, entry: Block) -> None:
        """Stack variables and the arena at the top of the primal sweep."""
        owner = self.owner
        top = Builder(entry, at=0)
        for alloca in owner.stacks[True]:
            top.insert(alloca)
        if owner.taped is not None:
            owner.taped.entry(top)
        if owner.split:
            return
        for cell in owner.zeroed:
            top.store(zero_of(cell.elem), cell)  # type: ignore[arg-type]
        if owner.arena is not None and not owner.lent:
            assert isinstance(owner.arena, Instruction)
            top.insert(owner.arena)


__all__ = ["Backward", "has_float"]
