"""Windows of neighbouring loads, u[i-1], u[i], u[i+1] in one loop, whose adjoints are summed before they are stored.

Which loads stand together, and which reverse loops count up (see `neighbours.py` and `upward.py`). Without this,
`benchmarks.run brusselator-vjp` takes 1.85 of the time and `burgers-swap` 1.58, `benchmarks.dense jacobi_2d` 2.3.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from irgrad.engine.ir.model import Instruction
from irgrad.engine.schedule.cells import cell_of, enters_with
from irgrad.engine.schedule.upward import counts_up

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

WIDEST = 6


class Group:
    """Loads of one loop that read cells 0..span of a window which moves on by one cell an iteration, and header phis
    that hold what an earlier iteration has loaded."""

    __slots__ = ("highest", "shifts", "span")

    def __init__(self, members: list[tuple[int, Instruction]]) -> None:
        low = min(at for at, _ in members)
        self.span = max(at for at, _ in members) - low
        self.shifts = {load: at - low for at, load in members}
        self.highest = next(load for load, shift in self.shifts.items() if shift == self.span and load.opcode == "load")


def _wide(group: Group) -> bool:
    return 0 < group.span <= WIDEST and len(group.shifts) > 1


def worth(groups: list[Group]) -> bool:
    """Whether counting up pays: in stencils. Others have few shuffles to save, and where a loop has long calls, memory
    is fetched ahead more surely downwards (measured: 1.7x slower upwards on sums of exp sin, of some alignments)."""
    return bool(groups)


def _side_by_side(facts: ReverseFacts) -> bool:
    """Whether shadow memory is accessed as the primal's is: the lanes of a number together, and always."""
    return not facts.unit.memory.separate and not facts.unit.runtime_activity


class Windows:
    """The groups of one function, and the loops whose reverse counts up."""

    def __init__(self, facts: ReverseFacts) -> None:
        self.facts = facts
        self.group: dict[Instruction, Group] = {}
        self.of_loop: dict[Loop, list[Group]] = {}
        self.upward: set[Loop] = set()
        for loop in facts.loops.all if _side_by_side(facts) else ():
            if loop.children or loop.latch is None or loop.exiting != [loop.latch]:
                continue
            windows = self._windows(loop)
            longer = [group for members in windows if _wide(group := Group(members + self._held(loop, members)))]
            groups = [group for members in windows if _wide(group := Group(members))]
            if worth(longer) and counts_up(facts, loop, {member for group in longer for member in group.shifts}):
                self.upward.add(loop)
                groups = longer
            for group in groups:
                self.group.update(dict.fromkeys(group.shifts, group))
                self.of_loop.setdefault(loop, []).append(group)

    def _windows(self, loop: Loop) -> list[list[tuple[int, Instruction]]]:
        facts = self.facts
        found: dict[Hashable, list[tuple[int, Instruction]]] = {}
        for block in loop.blocks:
            if not facts.dom.dominates(block, loop.latches[0]):
                continue
            for instr in block.instructions:
                if instr.opcode == "load" and instr.type.is_float and facts.active(instr):
                    place = cell_of(facts, loop, instr)
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
                if enters_with(self.facts, loop, self.facts.entering(phi), lowest_load, at - 1 - lowest):
                    cells[phi] = at - 1
                    found.append((at - 1, phi))
                    grown = True
        return found
