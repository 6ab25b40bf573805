"""Sets of offsets."""

from __future__ import annotations

from irgrad.engine.analyses.offsets import TOP, Offsets, add, contains, join, meets, multiply, scale


def test_offsets_of_nested_loops_stay_inside_their_struct() -> None:
    outer = Offsets(0, ((32, None),))
    inner = add(outer, Offsets(0, ((8, 2),)))
    assert inner.expand() == (0, 8, 16)
    assert meets(inner, outer.shift(24), -3, 8) == []
    assert meets(inner, outer.shift(16), -3, 8) == [0]
    assert contains(outer, Offsets(64))
    assert not contains(outer, Offsets(8))
    assert join(Offsets(0), Offsets(24)) == Offsets(0, ((24, 1),))
    assert scale(TOP, 8).stride == 8


def test_joins_come_to_rest() -> None:
    grown = Offsets(0)
    for k in range(1, 50):
        grown = join(grown, Offsets(8 * k), widen=k > 3)
    assert grown == Offsets(0, ((8, None),))
    assert join(grown, Offsets(-8), widen=True).below


def test_products_and_negative_factors() -> None:
    rows = Offsets(0, ((1, None),))
    assert multiply(scale(rows, 3), scale(rows, 8)).stride == 24
    assert scale(Offsets(1, ((1, 3),)), -2).expand() == (-8, -6, -4, -2)
    assert scale(rows, -8).below
