"""Warnings of loops that keep a tape of all their iterations, though the memory of tapes is to be bounded."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgrad.engine.differentiate.tape.tape_plan import TapePlan

__all__ = ["WholeTape", "warn_of_tapes"]


class WholeTape(RuntimeWarning):
    """A loop keeps a tape of all its iterations, whatever `checkpoint` and `tape_memory` say."""


def warn_of_tapes(plan: TapePlan) -> None:
    """Warn of each outermost loop of a function that cannot run again and of which something is saved."""
    facts = plan.facts
    for loop in facts.loops.top:
        said = facts.unit.left.get((facts.fn, loop.header.name or ""))
        if said and any(saved.level is not None and loop.contains(saved.level) for saved in plan.saved.values()):
            warnings.warn(WholeTape(said), stacklevel=2)
