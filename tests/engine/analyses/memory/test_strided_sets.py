"""Sets of offsets."""

from __future__ import annotations

import random
from collections.abc import Iterator

from irgrad.engine.analyses.memory.strided_sets import (
    TOP,
    Offsets,
    _contains_at,
    _touch_at,
    add,
    contains,
    contains_moved,
    join,
    make,
    meets,
    multiples,
    multiply,
    scale,
    touches,
)


def test_offsets_of_nested_loops_stay_inside_their_struct() -> None:
    outer = Offsets(0, ((32, None),))
    inner = add(outer, Offsets(0, ((8, 2),)))
    assert inner.expand() == (0, 8, 16)
    assert meets(inner, outer.shift(24), -3, 8) == []
    assert meets(inner, outer.shift(16), -3, 8) == [0]
    assert contains(outer, Offsets(64))
    assert not contains(outer, Offsets(8))
    assert join(Offsets(0), Offsets(24)) == Offsets(0, ((24, 1),))
    rows = ((112, 2),)
    assert join(Offsets(49, rows), Offsets(48, rows)) == Offsets(48, ((112, 2), (1, 1)))
    assert join(Offsets(48, rows), Offsets(160, rows)) == Offsets(48, ((112, 3),))
    assert scale(TOP, 8).stride == 8


def test_a_set_that_contains_another_one_moved_a_little() -> None:
    draw, seen = random.Random(3), set()
    for _ in range(4000):
        a, b = (
            make(draw.randrange(-9, 9), [(draw.choice((2, 3, 4, 8, 12)), draw.choice((None, None, 2)))
                                         for _ in range(draw.randrange(3))], draw.random() < 0.3) for _ in "ab"
        )  # fmt: skip
        lowest = draw.randrange(-8, 1)
        limit = draw.randrange(lowest, 9)
        found = contains_moved(a, b, lowest, limit)
        assert found == any(contains(a, b.shift(at)) for at in range(lowest, limit)), (a, b, lowest, limit)
        seen.add((found, len(a.terms), len(b.terms)))
    assert {(True, 1, 1), (False, 1, 1), (True, 1, 0), (False, 1, 0), (True, 2, 1)} <= seen


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


def _members(places: Offsets, reach: int) -> Iterator[int]:
    """The members whose multiples of a free stride are at most `reach`."""
    found = {places.start}
    for stride, count in places.terms:
        turns = range(count + 1) if count is not None else range(-reach if places.below else 0, reach + 1)
        found = {x + stride * k for x in found for k in turns}
    yield from found


def test_distances_are_those_of_the_members() -> None:
    rng = random.Random(3)

    def some() -> Offsets:
        terms = [(rng.choice((1, 3, 4, 6, 8)), rng.choice((None, 1, 2, 3, 12))) for _ in range(rng.randrange(3))]
        return make(rng.randrange(-9, 10), terms, rng.random() < 0.3)

    for _ in range(400):
        a, b, lowest, size = some(), some(), -rng.randrange(9), rng.randrange(1, 17)
        far = list(_members(b, 40))
        want = {y - x for x in _members(a, 40) for y in far if lowest <= y - x < size}
        assert meets(a, b, lowest, size) == sorted(want)
        assert touches(a, b, lowest, size) == bool(want)


def test_multiples_are_those_of_the_members() -> None:
    def near(places: Offsets | None) -> set[int]:
        return set() if places is None else {x for x in _members(places, 200) if abs(x) < 100}

    dice = random.Random(4)
    for _ in range(400):
        terms = [(dice.choice([1, 2, 3, 4, 8, 12, 24]), dice.choice([None, 1, 2, 5])) for _ in range(dice.randrange(3))]
        places = make(dice.randrange(-9, 30), terms, dice.random() < 0.3)
        of = dice.choice([2, 4, 8])
        found, want = near(multiples(places, of)), {x for x in near(places) if x % of == 0}
        assert found == want if len(places.terms) <= 1 else found >= want, (places, of)


def test_sets_touch_where_they_meet_and_questions_are_answered_once_for_a_distance() -> None:
    draw, seen = random.Random(5), set()
    pairs = []
    for _ in range(3000):
        a, b = (
            make(draw.randrange(-40, 40), [(draw.choice((2, 8, 12, 40)), draw.choice((None, 1, 2, 5)))
                                           for _ in range(draw.randrange(3))], draw.random() < 0.3) for _ in "ab"
        )  # fmt: skip
        lowest = draw.randrange(-9, 3)
        limit = draw.randrange(lowest, 9)
        found = touches(a, b, lowest, limit)
        assert found == bool(meets(a, b, lowest, limit)), (a, b, lowest, limit)
        seen.add((found, bool(a.stride), bool(b.stride)))
        pairs.append((a, b, lowest, limit, found, contains(a, b)))
    assert len(seen) == 8
    computed = [kept.cache_info().misses for kept in (_touch_at, _contains_at)]
    for a, b, lowest, limit, found, inside in pairs:
        assert touches(a.shift(1000), b.shift(1000), lowest, limit) == found
        assert contains(a.shift(1000), b.shift(1000)) == inside
    assert [kept.cache_info().misses for kept in (_touch_at, _contains_at)] == computed


def test_a_few_numbers_that_lie_anyhow() -> None:
    few = join(join(Offsets(0), Offsets(24), apart=True), Offsets(120), apart=True)
    assert few.expand() == (0, 24, 120)
    assert few == join(Offsets(120), join(Offsets(24), Offsets(0), apart=True), apart=True)
    assert repr(few.shift(8)) == "{8, 32, 128}"
    assert add(few, Offsets(8)) == add(Offsets(8), few) == few.shift(8)
    assert touches(few, Offsets(24), -7, 8)
    assert not touches(few, Offsets(32), -7, 8)
    assert contains(few, Offsets(24))
    assert not contains(few, Offsets(48))
    assert join(few, Offsets(24), apart=True) is few
    assert join(Offsets(0), Offsets(24), apart=True) == Offsets(0, ((24, 1),))  # all that there are at such steps


def test_sets_of_members_are_what_they_say() -> None:
    draw, told = random.Random(5), 0
    for _ in range(3000):
        parts = [Offsets(8 * draw.randrange(30)) for _ in range(draw.randrange(2, 7))]
        one = parts[0]
        for part in parts[1:]:
            one = join(one, part, apart=True)
        assert set(one.expand()) == {part.start for part in parts}
        other = make(draw.randrange(9), [(draw.choice((8, 24, 40)), draw.choice((None, 2)))], False)
        for both in (join(one, other, apart=True), join(other, one), join(one, other, widen=True)):
            assert contains(both, one)
            assert contains(both, other)
        total = add(one, other)
        assert all(touches(total, Offsets(x + y), 0, 1) for x in one.expand() for y in other.expand())
        assert set(meets(one, other, -20, 20)) == {d for d in range(-20, 20) if any(
            contains(other, Offsets(x + d)) for x in one.expand())}  # fmt: skip
        assert touches(one, other, -3, 5) == bool(meets(one, other, -3, 5))
        scaled = scale(one, 3)
        assert all(contains(scaled, Offsets(3 * x)) for x in one.expand())
        told += bool(one.members)
    assert told > 1000
