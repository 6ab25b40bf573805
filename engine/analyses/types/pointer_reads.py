"""Memory of the function's own in which no pointer is ever kept.

    solver->data = solver->by_differences ? (void *)solver : user;          solver->f(x, solver->data);

Which function goes with which data only the program knows: as far as the analysis sees, the user's floats may be handed
to the function that takes its argument for a solver. A pointer that is read there is none, and says nothing of the
floats.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import PointsTo
from irgrad.engine.analyses.memory.spots import Spots

__all__ = ["keeping_pointers"]


def keeping_pointers(pointers: PointsTo, spots: Spots) -> Spots:
    """Of the places at which a pointer is read, those in objects where there may be one; all, where there is none."""
    found = {bit: places for bit, places in spots.items() if _keeps(pointers, bit)}
    return found or spots


def _keeps(pointers: PointsTo, bit: int) -> bool:
    obj = pointers.objects[bit]
    known = obj.kind in ("alloca", "heap") and not pointers.escaped_mask >> bit & 1
    return not known or pointers.contents(obj) != 0
