"""What the accesses of a loop touch, and stores that leave it.

A cell that a loop adds to in each iteration (`a[i][j] -= a[i][k] * a[k][j]`) is in a register after LLVM's passes, but
each iteration still stores it: they do not see that no other access of the loop goes to that cell, since the loads go
to other rows of the same matrix. In reverse each such store takes the cell's adjoint from memory and clears it. That no
iteration meets the cell follows from subscripts and bounds (`overwrites.py`). Then the last store is enough, behind the
loop.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.overwrites import Overwrites
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, Function, Instruction
from irgrad.engine.normalise.preheader import always_runs
from irgrad.rules.effects import facts

__all__ = ["LoopMemory", "comes_back", "keep_of_metadata", "leaves_at_end", "may_sink", "sink_stores"]


class LoopMemory:
    """The answers for one function."""

    def __init__(self, pointers: Pointers, fn: Function) -> None:
        self.pointers, self.fn = pointers, fn
        self.loops = get(Loops, fn)
        self._overwrites: Overwrites | None = None
        self._forms: Induction | None = None
        self._touched: dict[Loop, list[tuple[Instruction, int, int]]] = {}

    def alone(
        self, access: Instruction, loop: Loop, *, reads: bool = False, beside: Collection[Instruction] = ()
    ) -> bool:
        """Whether nothing else in a loop writes the memory of an access whose address is the same in all iterations;
        nor reads it, where that is asked. beside: accesses that may."""
        pointers = self.pointers
        objects = pointers.expand(pointers.of(access.operands[-1]))
        if not objects:
            return False
        for other, read, written in self._accesses(loop):
            touched = read | written if reads else written
            meets = touched & objects and other is not access and loop.contains(other.block) and other not in beside
            if meets and not self._apart(access, other, loop):
                return False
        return True

    def _accesses(self, loop: Loop) -> list[tuple[Instruction, int, int]]:
        """What touches memory in a loop, with the objects that it may read and write; some have left it since."""
        if loop not in self._touched:
            pointers = self.pointers
            every = (i for block in loop.blocks for i in block.instructions)
            masks = ((i, pointers.instr_reads(i), pointers.instr_writes(i)) for i in every)
            self._touched[loop] = [found for found in masks if found[1] or found[2]]
        return self._touched[loop]

    def _apart(self, access: Instruction, other: Instruction, loop: Loop) -> bool:
        if other.opcode not in ("load", "store") or other.volatile or other.ordering:
            return False
        if self._overwrites is None:
            self._overwrites = Overwrites(Induction(self.fn))
        return self._overwrites.apart_within(access, other, loop)

    def reached(self, load: Instruction, loop: Loop) -> bool:
        """Whether the memory of a load may be read in front of a loop: it is accessed there, at the same address, or is
        that of a reference, and no call frees it."""
        address, ahead = load.operands[0], loop.preheader
        objects = self.pointers.expand(self.pointers.of(address)) & ~self._lasting()
        calls = (i for i in self.fn.instructions() if i.is_call and not (i.callee_name or "").startswith("llvm."))
        if any(self.pointers.instr_writes(call) & objects for call in calls):
            return False
        if self._referred(load):
            return True
        while ahead is not None:
            for other in ahead.instructions:
                if other.opcode in ("load", "store") and other.operands[-1] is address:
                    kind = other.type if other.opcode == "load" else other.operands[0].type
                    if kind is load.type and not other.volatile:
                        return True
            ahead = self.loops.dom.idom(ahead)
        return False

    def _referred(self, load: Instruction) -> bool:
        """Whether a load is of bytes that an argument is declared to lead to."""
        self._forms = self._forms or Induction(self.fn)
        base, form = self._forms.address(load.operands[0])
        found = re.search(r"\bdereferenceable\((\d+)\)", base.attrs) if isinstance(base, Argument) else None
        known = found is not None and form.exact and not form.terms
        return known and 0 <= signed(form.const) <= int(found[1]) - ty.store_size(load.type)  # type: ignore[index]

    def _lasting(self) -> int:
        """Objects that no call frees: variables, and arrays of the caller."""
        kinds = ("alloca", "global", "argument")
        return sum(1 << one.index for one in self.pointers.objects if one.kind in kinds)


def may_sink(fn: Function) -> bool:
    """Whether a loop of the function has a store that might leave it."""
    loops = get(Loops, fn)
    return any(_candidates(loop, loops) for loop in loops.all)


def sink_stores(memory: LoopMemory) -> int:
    """Have stores of which only the last one counts run behind their loops. Returns how many do."""
    loops, count = memory.loops, 0
    for loop in reversed(loops.all):
        for store in _candidates(loop, loops):
            if memory.alone(store, loop, reads=True):
                _sink(store, loop)
                count += 1
    return count


def _candidates(loop: Loop, loops: Loops) -> list[Instruction]:
    """Stores to an address of the loop's outside, in each iteration of a loop that is left at its end."""
    if not leaves_at_end(loop, loops):
        return []
    return [i for block in loop.blocks if always_runs(block, loop, loops) for i in block.instructions
            if i.opcode == "store" and not i.volatile and not i.ordering and _outside(i, loop)]  # fmt: skip


def leaves_at_end(loop: Loop, loops: Loops) -> bool:
    """Whether what runs behind a loop does so once it has run to the end of an iteration."""
    if loop.latch is None or loop.exiting != [loop.latch] or len(loop.exits) != 1 or loops.irreducible:
        return False
    if loops.cfg.preds(loop.exits[0]) != [loop.latch]:
        return False
    return all(comes_back(i) for block in loop.blocks for i in block.instructions if i.is_call)


def _outside(store: Instruction, loop: Loop) -> bool:
    address = store.operands[1]
    return not isinstance(address, Instruction) or not loop.contains(address.block)


def _sink(store: Instruction, loop: Loop) -> None:
    block, value, after = store.block, store.operands[0], loop.exits[0]
    assert block is not None and loop.latch is not None
    block.instructions.remove(store)
    keep_of_metadata(store)
    if isinstance(value, Instruction) and loop.contains(value.block):
        store.operands[0] = Builder(after, 0).phi(value.type, [(value, loop.latch)])
    Builder(after, _first(after)).insert(store)


def _first(block: Block) -> int:
    return next(n for n, instr in enumerate(block.instructions) if instr.opcode != "phi")


def keep_of_metadata(access: Instruction) -> None:
    """Leave what holds of an access wherever it runs: its line and its type. What it is apart from, and what it finds,
    was said of where it stood."""
    access.metadata = {kind: node for kind, node in access.metadata.items() if kind in ("dbg", "tbaa")}


def comes_back(call: Instruction) -> bool:
    """Whether a call returns."""
    name = call.callee_name or ""
    known = facts(name)
    return name.startswith("llvm.") or (known is not None and not known.noreturn)
