"""Orders, reachability and components, against naive searches on random graphs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from counting_work import growth
from graphs import graph_function, naive_reach, random_edges

from irgrad.engine.analyses.control.cfg import Cfg, strongly_connected


@pytest.mark.parametrize("seed", range(60))
def test_against_naive_searches(seed: int) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, rng.randrange(2, 25))
    fn = graph_function(edges)
    cfg = Cfg(fn)
    alive = naive_reach(edges, 0) | {0}
    assert {fn.blocks.index(b) for b in cfg.reachable} == alive
    assert cfg.rpo[0] is fn.entry and cfg.postorder == cfg.rpo[::-1]
    for i, a in enumerate(fn.blocks):
        assert cfg.succs(a) == [fn.blocks[t] for t in dict.fromkeys(edges[i])]
        preds = [fn.blocks[p] for p in range(len(edges)) if p in alive and i in edges[p]]
        assert cfg.preds(a) == preds
        below = naive_reach(edges, i)
        for j, b in enumerate(fn.blocks):
            assert cfg.reaches(a, b) == (i in alive and j in below), (i, j)
    # Along every edge that does not close a cycle the order rises.
    for a in cfg.rpo:
        for b in cfg.succs(a):
            assert cfg.index[a] < cfg.index[b] or cfg.reaches(b, a)
    assert sorted(cfg.index[b] for part in cfg.components() for b in part) == list(range(len(cfg.rpo)))


def test_components_come_sinks_first() -> None:
    assert strongly_connected([[1], [2, 3], [1], [3]]) == [[3], [2, 1], [0]]


def test_report_names_the_blocks() -> None:
    text = str(Cfg(graph_function([[1], [1, 2], []])))
    assert text.splitlines() == [
        "cfg of @g: 3 blocks reachable of 3",
        "  %b0 -> %b1",
        "  %b1 -> %b1 %b2",
        "  %b2 -> (leaves)",
    ]


def test_thousands_of_blocks_are_linear_work() -> None:
    def backwards(n: int) -> Callable[[], object]:
        fn = graph_function([[i + 1, max(1, i - 7)] for i in range(n - 1)] + [[]])

        def work() -> None:
            cfg = Cfg(fn)
            assert cfg.reaches(fn.blocks[1], fn.blocks[n - 1])
            assert not cfg.reaches(fn.blocks[n - 1], fn.blocks[1])

        return work

    def line(n: int) -> Callable[[], object]:
        fn = graph_function([[i + 1] for i in range(n - 1)] + [[]])

        def work() -> None:
            cfg = Cfg(fn)
            assert cfg.reaches(cfg.rpo[3], cfg.rpo[n - 2]) and not cfg.reaches(cfg.rpo[n - 2], cfg.rpo[3])

        return work

    assert growth(backwards, 300, 3_000) < 1.2
    assert growth(line, 300, 3_000) < 1.2
