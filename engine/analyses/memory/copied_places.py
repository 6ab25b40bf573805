"""Places of pointers in memory that is copied: what is only copied on, piece by piece, has no load or store that tells.

    V_part = *vectors;  product.lhs = V_part;          a struct on its way through a temporary

Where the places of one side of a copy are known, and where the copy begins on both, those of the other side follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from irgrad.engine.analyses.memory.objects import PointsTo
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir.model import ConstInt

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.value_ranges import Ranges

__all__ = ["copied_places"]

_MOST_LINKS = 16  # pairs of objects between which one call may copy
_MOST_PLACES = 512
_OWN = ("alloca", "heap", "global")


class _Link(NamedTuple):
    """So many bytes from a place in one object lie in `other`, `by` bytes further on. end: None where that is open."""

    start: int
    end: int | None
    other: int
    by: int


def copied_places(pointers: PointsTo, ranges: Ranges, seen: Mapping[int, set[Offsets]]) -> dict[int, set[Offsets]]:
    """Object -> places that copies bring there, or take from there, beside those that were seen."""
    links = _links(pointers, ranges)
    found: dict[int, set[Offsets]] = {}
    work = [(bit, set(places)) for bit, places in seen.items() if bit in links]
    while work:
        bit, places = work.pop()
        for link in links[bit]:
            known, more = seen.get(link.other, set()), found.setdefault(link.other, set())
            fresh = {place.shift(link.by) for place in places if _inside(place, link)} - known - more
            if fresh and len(known) + len(more) + len(fresh) <= _MOST_PLACES:
                more |= fresh
                if link.other in links:
                    work.append((link.other, fresh))
    return {bit: places for bit, places in found.items() if places}


def _inside(place: Offsets, link: _Link) -> bool:
    """Whether a copy takes a place along; of places that repeat, the first."""
    ended = link.end is not None and place.start >= link.end
    return not place.below and not ended and place.start >= link.start


def _links(pointers: PointsTo, ranges: Ranges) -> dict[int, list[_Link]]:
    """Object -> where what lies in it is copied, to or from."""
    links: dict[int, dict[_Link, None]] = {}
    for fn in pointers.functions:
        for call in (i for i in fn.instructions() if i.is_call):
            effect = pointers.effect(call)
            if effect is None or effect.copy is None:
                continue
            target, source, length = (call.args[i] for i in effect.copy)
            sides = [
                [(bit, at.start) for bit, at in ranges.places(address).items()
                 if at.exact and not at.below and pointers.objects[bit].kind in _OWN]
                for address in (target, source)
            ]  # fmt: skip
            size = length.value if isinstance(length, ConstInt) else None
            pairs = list(product(*sides))
            for (to, there), (bit, here) in pairs if len(pairs) <= _MOST_LINKS else ():
                for one, at, other, goal in ((bit, here, to, there), (to, there, bit, here)):
                    if one != other or at != goal:
                        link = _Link(at, None if size is None else at + size, other, goal - at)
                        links.setdefault(one, {})[link] = None
    return {bit: list(rows) for bit, rows in links.items()}
