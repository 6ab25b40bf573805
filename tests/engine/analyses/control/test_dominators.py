"""Dominators by definition: a dominates b when b is out of reach without a."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from counting_work import growth
from graphs import graph_function, random_edges

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.ir.text.reader import read


def reach_without(edges: list[list[int]], start: int, without: int) -> set[int]:
    seen, work = set(), [start]
    while work:
        node = work.pop()
        if node != without and node not in seen:
            seen.add(node)
            work.extend(edges[node])
    return seen


@pytest.mark.parametrize("seed", range(60))
def test_by_definition(seed: int) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, rng.randrange(2, 22))
    fn = graph_function(edges)
    cfg = Cfg(fn)
    dom, post = Dominators(cfg), PostDominators(cfg)
    alive = reach_without(edges, 0, -1)
    for i, a in enumerate(fn.blocks):
        if i not in alive:
            continue
        missed = reach_without(edges, 0, i)
        for j, b in enumerate(fn.blocks):
            if j not in alive:
                continue
            assert dom.dominates(a, b) == (j not in missed), (i, j)
            assert dom.strictly_dominates(a, b) == (j not in missed and i != j)
            leaves = any(not edges[k] for k in reach_without(edges, j, -1))
            escapes = any(not edges[k] for k in reach_without(edges, j, i))
            assert post.dominates(a, b) == (i == j or (leaves and not escapes)), (i, j)
    for block in cfg.rpo[1:]:
        up = dom.idom(block)
        assert up is not None and block in dom.children(up)
        others = [a for a in cfg.rpo if dom.strictly_dominates(a, block)]
        assert all(dom.dominates(a, up) for a in others)
    assert dom.idom(fn.entry) is None


def test_common_dominator_and_control_dependence() -> None:
    fn = graph_function([[1, 2], [3], [3], [4, 5], [3], []])
    cfg = Cfg(fn)
    dom, post = Dominators(cfg), PostDominators(cfg)
    b = fn.blocks
    assert dom.common(b[1], b[2]) is b[0] and dom.common(b[4], b[3]) is b[3]
    assert post.ipdom(b[0]) is b[3] and post.ipdom(b[5]) is None
    deps = post.control_dependences()
    assert deps[b[1]] == [b[0]] and deps[b[4]] == [b[3]] and deps[b[3]] == [b[3]] and deps[b[5]] == []


def test_values_dominate_uses() -> None:
    fn = read("""
define i32 @f(i32 %x) {
entry:
  %a = add i32 %x, 1
  %b = add i32 %a, 1
  %c = icmp eq i32 %b, 0
  br i1 %c, label %left, label %join
left:
  %d = mul i32 %b, 3
  br label %join
join:
  %p = phi i32 [ %d, %left ], [ %a, %entry ]
  %e = add i32 %p, 2
  ret i32 %e
}
""").functions["f"]
    dom = Dominators(Cfg(fn))
    at = {i.name: i for i in fn.instructions() if i.name is not None}
    assert dom.value_dominates(at["a"], at["b"]) and not dom.value_dominates(at["b"], at["a"])
    assert dom.value_dominates(at["d"], at["p"])  # on the edge it comes by
    assert not dom.value_dominates(at["d"], at["e"])
    assert dom.value_dominates(fn.args[0], at["a"])
    assert str(dom).splitlines()[1:] == ["  %entry", "    %left", "    %join"]


def test_cleanup_chains_do_not_go_quadratic() -> None:
    # block i may fail into clean-up i, which falls through all earlier clean-ups
    def chains(n: int) -> Callable[[], object]:
        edges = [[i + 1, 2 * n - 1 - i] for i in range(n - 1)] + [[n]] + [[n + i + 1] for i in range(n - 1)] + [[]]
        fn = graph_function(edges)

        def work() -> None:
            dom = Dominators(Cfg(fn))
            assert dom.idom(fn.blocks[2 * n - 1]) is fn.blocks[0]

        return work

    assert growth(chains, 300, 3_000) < 1.2
