"""Adjoints of neighbouring loads: u[i-1], u[i], u[i+1] in one loop.

Each would add to the shadow of its own cell, so that one iteration writes what the next one reads: no vectorisation,
and a chain of store forwarding. But a cell is touched by a few consecutive iterations only, and run backwards the
highest cell of an iteration is done with. So the pending sums of the other cells wait in registers, move on by one
cell an iteration, and each cell of shadow memory is updated once:

    iteration c     pending[k] += contributions to cell c + k ; shadow[c + span] += pending[span] ; pending moves up
    by one after the loop  shadow[k - 1] += pending[k],  k = 1..span

Nothing else may write the memory inside the loop (additions commute, so other loads may).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.transforms.apart import Apart
from irgrad.engine.transforms.cells import cell_of
from irgrad.engine.transforms.leaves import add, zero_of

if TYPE_CHECKING:
    from irgrad.engine.analyses.loops import Loop
    from irgrad.engine.transforms.reverse import Reverse

WIDEST = 6


class Group:
    """Loads of one loop that read cells 0..span of a window which moves on by one cell an iteration."""

    __slots__ = ("highest", "pending", "shifts", "span")

    def __init__(self, members: list[tuple[int, Instruction]]) -> None:
        low = min(at for at, _ in members)
        self.span = max(at for at, _ in members) - low
        self.shifts = {load: at - low for at, load in members}
        self.highest = next(load for load, shift in self.shifts.items() if shift == self.span)
        self.pending: list[Instruction] = []


def _side_by_side(owner: Reverse) -> bool:
    """Whether shadow memory is accessed as the primal's is: the lanes of a number together, and always."""
    return not isinstance(owner.unit.width, Apart) and not owner.unit.runtime_activity


class Neighbours:
    """The groups of one function and their pending sums."""

    def __init__(self, owner: Reverse) -> None:
        self.owner = owner
        self.group: dict[Instruction, Group] = {}
        self.of_loop: dict[Loop, list[Group]] = {}
        for loop in owner.loops.all if _side_by_side(owner) else ():
            if loop.children or loop.latch is None or loop.exiting != [loop.latch]:
                continue
            for members in self._windows(loop):
                group = Group(members)
                if 0 < group.span <= WIDEST and len(members) > 1:
                    self.group.update(dict.fromkeys(group.shifts, group))
                    self.of_loop.setdefault(loop, []).append(group)

    def _windows(self, loop: Loop) -> list[list[tuple[int, Instruction]]]:
        owner = self.owner
        found: dict[Hashable, list[tuple[int, Instruction]]] = {}
        for block in loop.blocks:
            if not owner.dom.dominates(block, loop.latches[0]):
                continue
            for instr in block.instructions:
                if instr.opcode == "load" and instr.type.is_float and owner.active(instr):
                    place = cell_of(owner, loop, instr)
                    if place is not None:
                        found.setdefault(place[0], []).append((place[1], instr))
        return list(found.values())

    def give(self, load: Instruction, amount: Value) -> bool:
        """Take the adjoint of a load into the pending sums; False when the load belongs to no group."""
        group = self.group.get(load)
        if group is None:
            return False
        owner = self.owner
        if not group.pending:
            type_ = owner.unit.wide(load.type)
            group.pending = [owner.zeroed_stack(type_) for _ in range(group.span + 1)]
        cell = group.pending[group.shifts[load]]
        b = owner.b
        b.flags = owner.unit.flags
        b.store(add(b, b.load(owner.unit.wide(load.type), cell), amount), cell)
        b.flags = ()
        return True

    def finish(self, loop: Loop) -> None:
        """End of a reverse iteration: the highest cell is complete, the others move on."""
        b = self.owner.b
        for group in self.of_loop.get(loop, ()):
            if not group.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            pointer = self.owner.recall.shadow(group.highest.operands[0])
            values = [b.load(type_, cell) for cell in group.pending]
            self._add(pointer, values[-1], type_)
            for cell, value in zip(group.pending, [zero_of(type_), *values[:-1]], strict=True):
                b.store(value, cell)

    def flush(self, loop: Loop) -> None:
        """After the first iteration: what is still pending goes to memory."""
        b = self.owner.b
        for group in self.of_loop.get(loop, ()):
            if not group.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            top = self.owner.recall.shadow(group.highest.operands[0])
            size = ty.store_size(type_)
            for k in range(1, group.span + 1):
                pointer = b.gep(ty.I8, top, (k - 1 - group.span) * size)
                self._add(pointer, b.load(type_, group.pending[k]), type_)
                b.store(zero_of(type_), group.pending[k])

    def _add(self, pointer: Value, amount: Value, type_: ty.Type) -> None:
        b = self.owner.b
        b.flags = self.owner.unit.flags
        align = ty.align_of(type_.scalar)
        b.store(add(b, b.load(type_, pointer, align), amount), pointer, align)
        b.flags = ()
