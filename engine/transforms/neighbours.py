"""Adjoints of neighbouring loads: u[i-1], u[i], u[i+1] in one loop.

Each would add to the shadow of its own cell, so that one iteration writes what the next one reads: no vectorisation,
and a chain of store forwarding. But a cell is touched by a few consecutive iterations only, and run backwards the
highest cell of an iteration is done with (in a loop that counts up, see `upward.py`, the lowest). So the pending sums
of the other cells wait in registers, move on by one cell an iteration, and each cell of shadow memory is updated once:

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
from irgrad.engine.transforms.cells import cell_of, enters_with
from irgrad.engine.transforms.leaves import add, zero_of
from irgrad.engine.transforms.upward import counts_up

if TYPE_CHECKING:
    from irgrad.engine.analyses.loops import Loop
    from irgrad.engine.transforms.reverse import Reverse

WIDEST = 6


class Group:
    """Loads of one loop that read cells 0..span of a window which moves on by one cell an iteration, and header phis
    that hold what an earlier iteration has loaded."""

    __slots__ = ("highest", "pending", "shifts", "span")

    def __init__(self, members: list[tuple[int, Instruction]]) -> None:
        low = min(at for at, _ in members)
        self.span = max(at for at, _ in members) - low
        self.shifts = {load: at - low for at, load in members}
        self.highest = next(load for load, shift in self.shifts.items() if shift == self.span and load.opcode == "load")
        self.pending: list[Instruction] = []


def _wide(group: Group) -> bool:
    return 0 < group.span <= WIDEST and len(group.shifts) > 1


def worth(groups: list[Group]) -> bool:
    """Whether counting up pays: in stencils. Others have few shuffles to save, and where a loop has long calls, memory
    is fetched ahead more surely downwards (measured: 1.7x slower upwards on sums of exp sin, of some alignments)."""
    return bool(groups)


def _side_by_side(owner: Reverse) -> bool:
    """Whether shadow memory is accessed as the primal's is: the lanes of a number together, and always."""
    return not isinstance(owner.unit.width, Apart) and not owner.unit.runtime_activity


class Neighbours:
    """The groups of one function and their pending sums."""

    def __init__(self, owner: Reverse) -> None:
        self.owner = owner
        self.group: dict[Instruction, Group] = {}
        self.of_loop: dict[Loop, list[Group]] = {}
        self.upward: set[Loop] = set()
        for loop in owner.loops.all if _side_by_side(owner) else ():
            if loop.children or loop.latch is None or loop.exiting != [loop.latch]:
                continue
            windows = self._windows(loop)
            longer = [group for members in windows if _wide(group := Group(members + self._held(loop, members)))]
            groups = [group for members in windows if _wide(group := Group(members))]
            if worth(longer) and counts_up(owner, loop, {member for group in longer for member in group.shifts}):
                self.upward.add(loop)
                groups = longer
            for group in groups:
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

    def _held(self, loop: Loop, members: list[tuple[int, Instruction]]) -> list[tuple[int, Instruction]]:
        """Header phis that hold what a load of a window read one iteration ago, two iterations ago, ..."""
        found: list[tuple[int, Instruction]] = []
        cells = {load: at for at, load in members}
        lowest, lowest_load = min(members, key=lambda m: m[0])
        waiting, grown = list(loop.header.phis), loop.latch is not None
        while grown:
            grown = False
            for phi in waiting:
                at = cells.get(phi.operands[phi.blocks.index(loop.latches[0])])  # type: ignore[call-overload]
                if phi in cells or at is None or at - 1 < lowest - WIDEST:
                    continue
                if enters_with(self.owner, loop, self.owner.entering(phi), lowest_load, at - 1 - lowest):
                    cells[phi] = at - 1
                    found.append((at - 1, phi))
                    grown = True
        return found

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
        """End of a reverse iteration: the cell that no other iteration reads is complete, the others move on."""
        b, up = self.owner.b, loop in self.upward
        for group in self.of_loop.get(loop, ()):
            if not group.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            values: list[Value] = [b.load(type_, cell) for cell in group.pending]
            self._add(self._cell(group, 0 if up else group.span), values[0 if up else -1], type_)
            moved = [*values[1:], zero_of(type_)] if up else [zero_of(type_), *values[:-1]]
            for cell, value in zip(group.pending, moved, strict=True):
                b.store(value, cell)

    def flush(self, loop: Loop) -> None:
        """After the last reverse iteration: what is still pending goes to memory."""
        b, up = self.owner.b, loop in self.upward
        for group in self.of_loop.get(loop, ()):
            if not group.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            for k in range(1, group.span + 1):
                pending = group.pending[k - 1 if up else k]
                self._add(self._cell(group, k if up else k - 1), b.load(type_, pending), type_)
                b.store(zero_of(type_), pending)

    def _cell(self, group: Group, number: int) -> Value:
        """Shadow of a cell in the window of the current iteration."""
        top = self.owner.recall.shadow(group.highest.operands[0])
        size = ty.store_size(self.owner.unit.wide(group.highest.type))
        return top if number == group.span else self.owner.b.gep(ty.I8, top, (number - group.span) * size)

    def _add(self, pointer: Value, amount: Value, type_: ty.Type) -> None:
        b = self.owner.b
        b.flags = self.owner.unit.flags
        align = ty.align_of(type_.scalar)
        b.store(add(b, b.load(type_, pointer, align), amount), pointer, align)
        b.flags = ()
