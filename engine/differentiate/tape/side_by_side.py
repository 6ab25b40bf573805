"""Which values of an iteration lie side by side on the tape: one array for all of them, in place of one for each.

Where LLVM makes vectors of iterations, each value has an array of its own: neighbours in it are of neighbouring
iterations. Elsewhere that is dear. A body with sixty values has sixty addresses, more than there are registers, and
touches as many lines of the cache in each iteration. Side by side they have one address, and what the body handles as
neighbours (the rows of a small block, unrolled) is one vector on the tape as well.

So are the values of one type that range over the same loops, where the innermost of these has few iterations and no
whole number of vectors.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.tape.demands import Demands

__all__ = ["Group", "side_by_side"]

FEW = 16
VECTOR = 4
"""A loop of fewer iterations than `FEW` is none of vectors, unless they are a multiple of `VECTOR`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Values that share an array. loops: those that it ranges over."""

    members: tuple[Hashable, ...]
    loops: tuple[Loop, ...]

    @property
    def key(self) -> Hashable:
        """What stands for the array in a plan."""
        return ("values", self.members[0])


def side_by_side(demands: Demands) -> dict[Hashable, tuple[Group, int]]:
    """The groups of a plan, as (group, place in it) of each member; the plan has one address for each of them."""
    found: dict[Hashable, tuple[Group, int]] = {}
    levels = dict.fromkeys(saved.level for saved in demands.saved.values() if saved.loops)
    few = (one for one in levels if one is not None and _few(demands, one))
    for level in sorted(few, key=lambda loop: -loop.depth):
        groups: dict[tuple[object, ...], list[Hashable]] = {}
        for key, saved in demands.saved.items():
            if saved.level is level and saved.loops and not _apart(key):
                groups.setdefault((saved.type, saved.loops), []).append(key)
        for (_, loops), members in groups.items():
            if len(members) > 1:
                group = Group(tuple(members), loops)  # type: ignore[arg-type]
                found.update({key: (group, place) for place, key in enumerate(members)})
                demands.one_array(group.key, members, level)
    return found


def _few(demands: Demands, level: Loop) -> bool:
    """Whether a loop has few iterations, of which no vectors are made."""
    count = demands.facts.constant_trip(level)
    return count is not None and count < FEW and (count + 1) % VECTOR != 0


def _apart(key: Hashable) -> bool:
    """Whether something has an array of its own: cells of neighbours, and links to the records of a loop within."""
    return isinstance(key, tuple) and key[0] in ("cells", "record")
