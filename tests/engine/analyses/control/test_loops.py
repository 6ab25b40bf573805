"""Natural loops, their nesting, and cycles that are none."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from counting_work import growth
from graphs import graph_function, naive_reach, random_edges

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loops


def test_a_nest_with_two_latches_and_two_exits() -> None:
    # 0 -> 1(header) -> 2(inner header) -> 3 -> 2 | 4 ; 4 -> 1 | 5 ; 2 -> 6(exit)
    fn = graph_function([[1], [2], [3, 6], [2, 4], [1, 5], [1, 7], [7], []])
    b = fn.blocks
    loops = Loops(Cfg(fn))
    assert len(loops.top) == 1 and len(loops.all) == 2 and not loops.irreducible
    outer, inner = loops.all
    assert outer.header is b[1] and set(outer.blocks) == {b[1], b[2], b[3], b[4], b[5]} and outer.blocks[0] is b[1]
    assert outer.latches == [b[4], b[5]] or set(outer.latches) == {b[4], b[5]}
    assert outer.latch is None and outer.preheader is b[0]
    assert set(outer.exiting) == {b[2], b[5]} and set(outer.exits) == {b[6], b[7]}
    assert inner.parent is outer and outer.children == [inner] and inner.depth == 2
    assert inner.latch is b[3] and inner.preheader is b[1]
    assert loops.of(b[3]) is inner and loops.of(b[4]) is outer and loops.of(b[7]) is None
    assert outer.contains(inner) and not inner.contains(outer) and not outer.contains(b[6])
    assert inner.ancestors() == [inner, outer] and loops.depth(b[2]) == 2
    assert "%b2: latches %b3, preheader %b1, exiting %b2 %b3, 2 blocks" in str(loops)


def test_irreducible_is_said_with_its_blocks() -> None:
    fn = graph_function([[1, 2], [2], [1, 3], []])
    loops = Loops(Cfg(fn))
    assert loops.irreducible and loops.offending and not loops.all
    assert "irreducible" in str(loops)


@pytest.mark.parametrize("seed", range(80))
def test_by_definition(seed: int) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, rng.randrange(2, 20))
    fn = graph_function(edges)
    cfg = Cfg(fn)
    dom = Dominators(cfg)
    loops = Loops(cfg, dom)
    number = {b: i for i, b in enumerate(fn.blocks)}
    for loop in loops.all:
        h = number[loop.header]
        expected = {h}
        work = [number[latch] for latch in loop.latches]
        while work:
            node = work.pop()
            if node not in expected:
                expected.add(node)
                work.extend(number[p] for p in cfg.preds(fn.blocks[node]))
        assert {number[x] for x in loop.blocks} == expected
        assert all(dom.dominates(loop.header, x) for x in loop.blocks)
    headers = {b for b in cfg.rpo for p in cfg.preds(b) if dom.dominates(b, p)}
    assert {loop.header for loop in loops.all} == headers
    for block in cfg.rpo:
        around = [loop for loop in loops.all if loop.contains(block)]
        deepest = max(around, key=lambda loop: loop.depth, default=None)
        assert loops.of(block) is deepest and loops.depth(block) == len(around)
    # Reducible exactly when nothing cyclic is left without the back edges.
    rest = [[t for t in out if not dom.dominates(fn.blocks[t], fn.blocks[i])] for i, out in enumerate(edges)]
    cyclic = any(i in naive_reach(rest, i) for i in range(len(rest)) if fn.blocks[i] in cfg.reachable)
    assert loops.irreducible == cyclic


def test_many_loops_are_linear_work() -> None:
    def many(n: int) -> Callable[[], object]:
        fn = graph_function([[i + 1, i] if i % 3 == 1 else [i + 1] for i in range(n - 1)] + [[]])

        def work() -> None:
            assert len(Loops(Cfg(fn)).all) == sum(i % 3 == 1 for i in range(n - 1))

        return work

    assert growth(many, 300, 3_000) < 1.2
