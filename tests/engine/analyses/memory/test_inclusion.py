"""Sets that include one another."""

from __future__ import annotations

from irgrad.engine.analyses.memory.inclusion import Inclusion


def test_sets_grow_along_edges() -> None:
    graph = Inclusion()
    a, b, c = graph.new(), graph.new(), graph.new()
    graph.add(a, 0b101)
    graph.edge(a, b)
    assert graph.points == [0b101, 0b101, 0]
    assert graph.work == [a, b]
    graph.edge(b, b)
    graph.add(b, 0b100)
    assert graph.work == [a, b], "nothing is new"
    graph.edge(b, c)
    assert graph.points[c] == 0b101


def test_flows_follows_every_edge() -> None:
    graph = Inclusion()
    nodes = [graph.new() for _ in range(5)]
    for source, target in ((0, 1), (1, 2), (2, 0), (3, 4)):
        graph.edge(nodes[source], nodes[target])
    assert graph.flows(0, {2})
    assert graph.flows(2, {1})
    assert graph.flows(3, {3})
    assert not graph.flows(0, {3, 4})
