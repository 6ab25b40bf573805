"""Sets of offsets, object by object: where a pointer leads in each of the objects that it may point to."""

from __future__ import annotations

from irgrad.engine.analyses.memory import strided_sets as off
from irgrad.engine.analyses.memory.byte_kinds import Kind
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets

ANY = -1
"""The key that stands for every object, used where there are many."""
MOST = 24
"""Objects that are told apart in one set."""

Spots = dict[int, Offsets]
"""Object number -> offsets in that object."""

Place = tuple[Offsets, Kind | None]
"""Where in a container something is stored, and as what the source calls it."""


def collapsed(spots: Spots) -> Spots:
    """The same, as one set where there are many objects."""
    return {ANY: join_all(spots)} if len(spots) > MOST else spots


def join_all(spots: Spots) -> Offsets:
    """One set for all objects."""
    out: Offsets | None = None
    for places in spots.values():
        out = places if out is None else off.join(out, places)
    return TOP if out is None else out


def union(a: Spots | None, b: Spots | None) -> Spots | None:
    """Either of two; None is a value that nothing is known of yet."""
    if not a:
        return a if b is None else b
    if not b or a is b:
        return a
    if ANY in a or ANY in b:
        return {ANY: off.join(join_all(a), join_all(b))}
    out = dict(a)
    for bit, places in b.items():
        before = out.get(bit)
        out[bit] = places if before is None else off.join(before, places, apart=True)
    return collapsed(out)


def include(total: Spots, bit: int, places: Offsets) -> None:
    """`union`, of one object, into a set that is being made."""
    before = total.get(bit)
    total[bit] = places if before is None or before is places else off.join(before, places, apart=True)


def settled(spots: Spots) -> Spots:
    """A set that was made of many, as `union` leaves it."""
    return {ANY: join_all(spots)} if ANY in spots else collapsed(spots)


def moved(spots: Spots | None, by: Offsets | None) -> Spots | None:
    """All spots displaced by the same set."""
    if spots is None or by is None:
        return None
    return {bit: off.add(places, by) for bit, places in spots.items()}
