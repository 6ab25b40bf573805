"""Warnings of loops that keep a tape of all their iterations, though the memory of tapes is to be bounded."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.differentiate.tape.tape_plan import TapePlan

__all__ = ["Warned", "WholeTape", "warn_of_tapes"]


class WholeTape(RuntimeWarning):
    """A loop keeps a tape of all its iterations, whatever `checkpoint` and `tape_memory` say."""


class Warned:
    """What was said of the tapes of a unit, for who finds its derivatives in a cache."""

    def __init__(self, _: Unit) -> None:
        self.rows: list[str] = []

    def warn(self, text: str) -> None:
        """Warn of a loop."""
        self.rows.append(text)
        warnings.warn(WholeTape(text), stacklevel=3)


def warn_of_tapes(plan: TapePlan) -> None:
    """Warn of each outermost loop of a function that cannot run again and of which something is saved."""
    facts = plan.facts
    for loop in facts.loops.top:
        said = facts.unit.left.get((facts.fn, loop.header.name or ""))
        if said and any(saved.level is not None and loop.contains(saved.level) for saved in plan.saved.values()):
            facts.unit.get(Warned).warn(said)
