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

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.differentiate.shadow.accumulate import accumulate
from irgrad.engine.differentiate.shared.alias_scopes import shadow_scope
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.schedule.loop_schedule import Group, LoopSchedule

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop

class Neighbours:
    """The groups of one function and their pending sums."""

    def __init__(self, owner: ReverseState, schedule: LoopSchedule) -> None:
        self.owner = owner
        self.schedule = schedule
        self.pending: dict[Group, list[Instruction]] = {}

    def give(self, load: Instruction, amount: Value) -> bool:
        """Take the adjoint of a load into the pending sums; False when the load belongs to no group."""
        group = self.schedule.window(load)
        if group is None:
            return False
        owner = self.owner
        if group not in self.pending:
            type_ = owner.unit.wide(load.type)
            self.pending[group] = [owner.zeroed_stack(type_) for _ in range(group.span + 1)]
        self._add(load, self.pending[group][group.shifts[load]], amount)
        return True

    def finish(self, loop: Loop) -> None:
        """End of a reverse iteration: the cell that no other iteration reads is complete, the others move on."""
        b, up = self.owner.b, self.schedule.counts_up(loop)
        for group in self.schedule.windows(loop):
            if group not in self.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            values: list[Value] = [b.load(type_, cell) for cell in self.pending[group]]
            self._add(group.highest, self._cell(group, 0 if up else group.span), values[0 if up else -1])
            moved = [*values[1:], zero_of(type_)] if up else [zero_of(type_), *values[:-1]]
            for cell, value in zip(self.pending[group], moved, strict=True):
                b.store(value, cell)

    def flush(self, loop: Loop) -> None:
        """After the last reverse iteration: what is still pending goes to memory."""
        b, up = self.owner.b, self.schedule.counts_up(loop)
        for group in self.schedule.windows(loop):
            if group not in self.pending:
                continue
            type_ = self.owner.unit.wide(group.highest.type)
            for k in range(1, group.span + 1):
                pending = self.pending[group][k - 1 if up else k]
                self._add(group.highest, self._cell(group, k if up else k - 1), b.load(type_, pending))
                b.store(zero_of(type_), pending)

    def _cell(self, group: Group, number: int) -> Value:
        """Shadow of a cell in the window of the current iteration."""
        top = self.owner.recall.shadow(group.highest.operands[0])
        size = ty.store_size(self.owner.unit.wide(group.highest.type))
        return top if number == group.span else self.owner.b.gep(ty.I8, top, (number - group.span) * size)

    def _add(self, load: Instruction, pointer: Value, amount: Value) -> None:
        b, unit = self.owner.b, self.owner.unit
        type_ = unit.wide(load.type)
        align = ty.align_of(type_.scalar)
        tags = shadow_scope(unit, load, load.type)
        accumulate(unit, b, load, amount, lambda: b.load(type_, pointer, align, tags),
                   lambda total, _: b.store(total, pointer, align, tags))  # fmt: skip
