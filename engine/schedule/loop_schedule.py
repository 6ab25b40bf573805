"""The schedule of a function's loops in its reverse derivative: the one interface between the shapes of loops that this
package knows and the plan and emission of the reverse sweep.

The plan of a tape makes one schedule; whoever wants to know how a loop runs backwards or where what it keeps lies asks
that. `LoopSchedule` is the plainest: each loop counts down, each value that is saved has an array of its own. Another
kind overrides some of its answers, and a `Request` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.ir.model import Instruction
from irgrad.engine.schedule.cells import Cells, find_cells, handed_on
from irgrad.engine.schedule.levels import Levels, find_levels
from irgrad.engine.schedule.windows import Group, Windows

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

__all__ = ["Cells", "Group", "Levels", "LoopSchedule", "StencilSchedule"]


class LoopSchedule:
    """The answers for one function, where no loop is anything special."""

    def __init__(self, facts: ReverseFacts) -> None:
        self.facts = facts
        self.cells: Mapping[Instruction, Cells] = {}  # loads that share an array with neighbours when they are saved

    def counts_up(self, loop: Loop) -> bool:
        """Whether the reverse of a loop runs its iterations in the order of the primal."""
        return False

    def window(self, load: Instruction) -> Group | None:
        """The neighbouring loads with which the adjoint of this one is summed before it is stored."""
        return None

    def windows(self, loop: Loop) -> Sequence[Group]:
        """All such groups of a loop."""
        return ()

    def handed_on(self, saved: Iterable[Instruction]) -> Mapping[Instruction, Cells]:
        """Of values that are saved, those that share an array with their own value one iteration ago."""
        return {}

    def levels(self, known: Mapping[Instruction, Cells], cells: Cells, inner: Loop) -> Levels | None:
        """Two buffers that change places after each step, of which the array of a group becomes the rows. `known`: the
        groups of the function."""
        return None


class StencilSchedule(LoopSchedule):
    """What is known of loops over neighbouring cells and of time steps."""

    def __init__(self, facts: ReverseFacts) -> None:
        super().__init__(facts)
        self._windows = Windows(facts)
        self.cells = find_cells(facts)

    def counts_up(self, loop: Loop) -> bool:
        """See `upward.py`."""
        return loop in self._windows.upward

    def window(self, load: Instruction) -> Group | None:
        """See `windows.py`."""
        return self._windows.group.get(load)

    def windows(self, loop: Loop) -> Sequence[Group]:
        """See `windows.py`."""
        return self._windows.of_loop.get(loop, ())

    def handed_on(self, saved: Iterable[Instruction]) -> Mapping[Instruction, Cells]:
        """See `cells.py`."""
        return handed_on(self.facts, self.cells, saved)

    def levels(self, known: Mapping[Instruction, Cells], cells: Cells, inner: Loop) -> Levels | None:
        """See `levels.py`."""
        return find_levels(self.facts, known, cells, inner)
