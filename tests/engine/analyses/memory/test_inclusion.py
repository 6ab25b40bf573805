"""Sets that include one another."""

from __future__ import annotations

from irgrad.engine.analyses.memory.access_paths import AccessPath, AccessPaths, Member
from irgrad.engine.analyses.memory.inclusion import ByType, Inclusion
from irgrad.engine.ir.text.reader import read

INT, DOUBLE = AccessPath("p1 int", None), AccessPath("p1 double", None)


def _spread(graph: Inclusion) -> None:
    while graph.work:
        node = graph.work.pop()
        for target in graph.successors[node]:
            graph.add(target, graph.points[node])


def _by_type(graph: Inclusion) -> ByType:
    return ByType(graph, AccessPaths(read("define void @f() {\n  ret void\n}")))


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
    types, cell = _by_type(graph), graph.new()
    graph.add(types.stored(cell, INT), 0b001)
    graph.add(types.stored(cell, DOUBLE), 0b010)
    graph.add(types.stored(cell), 0b100)
    reader = types.read(cell, DOUBLE)
    _spread(graph)
    assert graph.points[cell] == 0b111
    assert graph.points[reader] == 0b110, "what has no type may be any"
    assert not types.mistaken()
    alone = graph.new()
    graph.add(types.stored(alone, INT), 0b001)
    other = types.read(alone, DOUBLE)
    _spread(graph)
    assert types.mistaken(), "nothing was stored as that"
    _spread(graph)
    assert graph.points[other] == 0b001
    assert not types.mistaken()


def test_what_is_copied_is_what_it_was() -> None:
    graph = Inclusion()
    types, cell, middle, target = _by_type(graph), graph.new(), graph.new(), graph.new()
    graph.add(types.stored(cell, INT), 0b001)
    types.copied(cell, middle)
    types.copied(middle, target)
    types.copied(target, cell)
    graph.add(types.stored(cell, DOUBLE), 0b010)
    types.read(target, INT), types.read(target, DOUBLE)
    _spread(graph)
    assert graph.points[types.read(target, INT)] == 0b001
    assert graph.points[types.read(target, DOUBLE)] == 0b010
    assert graph.points[target] == 0b011


def test_members_to_which_nothing_was_stored_read_what_leads_where_they_do() -> None:
    graph = Inclusion()
    paths = AccessPaths(read("define void @f() {\n  ret void\n}"))
    types, cell, other = ByType(graph, paths), graph.new(), graph.new()
    first, second = (AccessPath("p1 int", Member((("!1", at),), "!0")) for at in (0, 8))
    graph.add(types.stored(cell, first), 0b01)
    graph.add(types.stored(cell, DOUBLE), 0b10)
    reader = types.read(cell, second)
    _spread(graph)
    assert graph.points[reader] == 0
    assert types.mistaken()
    assert graph.points[reader] == 0b01
    _spread(graph)
    graph.add(types.stored(other, second), 0b100)
    late = types.read(cell, AccessPath("p1 int", second.member))
    _spread(graph)
    assert not types.mistaken(), "elsewhere something was"
    assert graph.points[late] == 0
