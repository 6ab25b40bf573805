"""Sets that include one another."""

from __future__ import annotations

from irgrad.engine.analyses.memory.inclusion import ByType, Inclusion


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


def test_parts_of_a_cell_by_type() -> None:
    graph = Inclusion()
    types, cell, reader, other = ByType(graph), graph.new(), graph.new(), graph.new()

    def spread() -> None:
        while graph.work:
            node = graph.work.pop()
            for target in graph.successors[node]:
                graph.add(target, graph.points[node])

    graph.add(types.stored(cell, "p1 int"), 0b001)
    graph.add(types.stored(cell, "p1 double"), 0b010)
    graph.add(types.stored(cell), 0b100)
    for part in types.read(cell, "p1 double", reader):
        graph.edge(part, reader)
    spread()
    assert graph.points[cell] == 0b111
    assert graph.points[reader] == 0b110, "what has no type may be any"
    assert not types.mistaken()
    alone = graph.new()
    graph.add(types.stored(alone, "p1 int"), 0b001)
    for part in types.read(alone, "p1 double", other):
        graph.edge(part, other)
    spread()
    assert types.mistaken(), "nothing was stored as that"
    spread()
    assert graph.points[other] == 0b001
    assert not types.mistaken()


def test_what_is_copied_is_what_it_was() -> None:
    graph = Inclusion()
    types, cell, middle, target = ByType(graph), graph.new(), graph.new(), graph.new()
    graph.add(types.stored(cell, "p1 int"), 0b001)
    types.copied(cell, middle)
    types.copied(middle, target)
    types.copied(target, cell)
    graph.add(types.stored(cell, "p1 double"), 0b010)
    while graph.work:
        node = graph.work.pop()
        for successor in graph.successors[node]:
            graph.add(successor, graph.points[node])
    assert graph.points[types.stored(target, "p1 int")] == 0b001
    assert graph.points[types.stored(target, "p1 double")] == 0b010
    assert graph.points[target] == 0b011
