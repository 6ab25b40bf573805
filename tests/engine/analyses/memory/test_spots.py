"""Sets of offsets, object by object."""

from __future__ import annotations

from irgrad.engine.analyses.memory.spots import ANY, collapsed, join_all, moved, union
from irgrad.engine.analyses.memory.strided_sets import TOP, ZERO, Offsets


def test_sets_of_spots() -> None:
    assert union(None, {1: ZERO}) == {1: ZERO}
    assert union({}, None) == {}
    assert union({1: ZERO}, {1: Offsets(8), 2: ZERO}) == {1: Offsets(0, ((8, 1),)), 2: ZERO}
    assert union({ANY: TOP}, {1: ZERO}) == {ANY: TOP}
    assert moved({1: ZERO, 2: Offsets(4)}, Offsets(8)) == {1: Offsets(8), 2: Offsets(12)}
    assert moved(None, ZERO) is None
    many = union(dict.fromkeys(range(20), ZERO), dict.fromkeys(range(20, 40), Offsets(16)))
    assert many == {ANY: Offsets(0, ((16, 1),))}
    assert join_all({}) == TOP


def test_many_objects_are_one() -> None:
    few = dict.fromkeys(range(24), ZERO)
    assert collapsed(few) is few
    assert collapsed({**few, 24: Offsets(8)}) == {ANY: Offsets(0, ((8, 1),))}
