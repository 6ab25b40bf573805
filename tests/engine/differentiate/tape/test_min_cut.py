"""The minimum cut: against an exhaustive search on random graphs, and on a kernel whose tape it halves."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from handwritten.made import OUT, gradient

from irgrad.engine.differentiate.tape.min_cut import MAX_DEPTH, choose
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction


def _graph(seed: int) -> tuple[list[Instruction], dict[Instruction, list[Instruction] | None], dict[Instruction, int]]:
    rng = random.Random(seed)
    nodes = [Instruction("fadd", ty.F64) for _ in range(9)]
    parts: dict[Instruction, list[Instruction] | None] = {}
    for i, node in enumerate(nodes):
        parts[node] = None if i < 3 else rng.sample(nodes[:i], rng.randint(1, min(3, i)))
    return nodes, parts, {node: rng.choice((1, 8, 64)) for node in nodes}


def _available(saved: set[Instruction], node: Instruction, parts: dict[Instruction, list[Instruction] | None]) -> bool:
    if node in saved:
        return True
    below = parts[node]
    return below is not None and all(_available(saved, p, parts) for p in below)


@pytest.mark.parametrize("seed", range(25))
def test_no_cheaper_choice_exists(seed: int) -> None:
    nodes, parts, price = _graph(seed)
    demands = random.Random(seed + 1).sample(nodes, 3)
    saved, again = choose(demands, parts.__getitem__, price.__getitem__)
    assert all(_available(saved, d, parts) for d in demands)
    assert all(d in saved or d in again for d in demands)
    cost = sum(price[v] for v in saved)
    for count in range(len(nodes) + 1):
        for other in itertools.combinations(nodes, count):
            if all(_available(set(other), d, parts) for d in demands):
                assert cost <= sum(price[v] for v in other)


@pytest.mark.parametrize("seed", range(25))
def test_no_cheaper_choice_exists_where_computing_again_costs(seed: int) -> None:
    nodes, parts, price = _graph(seed)
    rng = random.Random(seed + 2)
    again_cost = {node: rng.choice((0, 1, 20)) for node in nodes}
    demands = rng.sample(nodes, 3)
    saved, again = choose(demands, parts.__getitem__, price.__getitem__, again_cost.__getitem__)
    assert all(_available(saved, d, parts) for d in demands)

    def whole(kept: set[Instruction]) -> int:
        made, work = set(kept), [d for d in demands if d not in kept]
        total = sum(price[v] for v in kept)
        for node in work:
            if node not in made:
                made.add(node)
                total += again_cost[node]
                work += [p for p in parts[node] or () if p not in made]
        return total

    assert whole(saved) == sum(price[v] for v in saved) + sum(again_cost[v] for v in again)
    for count in range(len(nodes) + 1):
        for other in itertools.combinations(nodes, count):
            if all(_available(set(other), d, parts) for d in demands):
                assert whole(saved) <= whole(set(other))


def test_long_chains_are_broken() -> None:
    chain = [Instruction("fadd", ty.F64) for _ in range(5 * MAX_DEPTH)]
    below = {v: [chain[i - 1]] if i else None for i, v in enumerate(chain)}
    saved, again = choose([chain[-1]], below.__getitem__, lambda v: 1 if v is chain[0] else 9)
    assert chain[0] in saved
    run = 0
    for v in chain:
        run = 0 if v in saved else run + 1
        assert run <= MAX_DEPTH + 1
        assert v in saved or v in again


def test_values_that_follow_from_one_are_not_saved_apart() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[0];
        for (long i = 0; i < *n; i++) {
            double a = s * 0.5, b = s + 1.0, c = a * b;
            s = c * a * b * 0.1;
        }
        *o = s;
    }"""
    (dx, _), made = gradient(source, "f", "dcd", np.array([0.9]), np.array([1000]), OUT)
    assert made.tape_bytes() < 1000 * 8 * 1.2 + 4096
    def f(s: float) -> float:
        for _ in range(1000):
            a, b = s * 0.5, s + 1.0
            s = a * b * a * b * 0.1
        return s

    assert np.isclose(dx[0], (f(0.9 + 1e-6) - f(0.9 - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-12)
