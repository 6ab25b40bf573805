"""Signs of polynomials: triangles by hand, and random systems against all their integer points."""

from __future__ import annotations

import itertools
import math
import random

from irgrad.engine.analyses.evolution.inequalities import Polynomial, System, added, constant, multiplied, variable


def _value(polynomial: Polynomial, point: tuple[int, ...]) -> int:
    return sum(c * math.prod(point[v] for v in monomial) for monomial, c in polynomial.items())


def test_sums_and_products() -> None:
    x, y = variable(0), variable(1)
    assert added(x, x, -1) == {}
    assert multiplied(added(x, y), added(x, y, -1)) == {(0, 0): 1, (1, 1): -1}
    assert constant(0) == {}


def test_rows_of_a_triangle() -> None:
    """k < j < i, i + d < n and d >= 1: element (i + d, m) lies behind element (i, k) of a matrix of n columns."""
    k, m, j, d, i, n = map(variable, range(6))
    one = constant(-1)
    facts = [k, added(added(j, k, -1), one), j, added(added(i, j, -1), one), m, added(d, one), i,
             added(added(added(n, i, -1), d, -1), one)]  # fmt: skip
    system = System(facts)
    apart = added(added(added(multiplied(n, d), m), k, -1), one)
    assert system.never_negative(apart)
    assert not system.never_negative(added(apart, multiplied(n, d), -1))
    assert not System(facts[1:]).never_negative(k)


def _linear(r: random.Random, numbers: range) -> Polynomial:
    chosen = {(v,): r.choice([1, 1, -1, -1, 2, -2]) for v in numbers if r.random() < 0.6}
    return added(chosen, constant(r.randint(-2, 2)))


def test_random_systems() -> None:
    """Whatever is said never to be negative is not at any point that the facts allow."""
    r, told = random.Random(0), 0
    points = list(itertools.product(range(-2, 4), repeat=4))
    for _ in range(300):
        facts = [variable(v) for v in range(4) if r.random() < 0.8]
        facts += [_linear(r, range(4)) for _ in range(r.randint(1, 4))]
        product = multiplied(_linear(r, range(2)), _linear(r, range(2, 4)))
        asked = added(_linear(r, range(4)), product, r.choice([0, 1, 1]))
        if System(facts).never_negative(asked):
            told += 1
            allowed = [point for point in points if all(_value(fact, point) >= 0 for fact in facts)]
            assert all(_value(asked, point) >= 0 for point in allowed)
    assert told > 10


def test_a_question_without_an_answer_ends() -> None:
    every = [variable(v) for v in range(30)]
    chains = [added(added(a, b, -1), constant(-1)) for a, b in itertools.combinations(every[:11], 2)]
    asked = added(every[0], multiplied(every[1], every[20]), -1)
    assert not System([*every, *chains]).never_negative(asked)
