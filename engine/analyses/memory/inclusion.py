"""Sets that include one another: nodes with a set each, as a bit mask, and edges along which the sets flow."""

from __future__ import annotations

from collections.abc import Set


class Inclusion:
    """A graph of sets. `work` are the nodes whose set has grown since it was last handed on."""

    __slots__ = ("done", "points", "successors", "work")

    def __init__(self) -> None:
        self.points: list[int] = []
        self.done: list[int] = []  # what of a node's set was handed on
        self.successors: list[set[int]] = []
        self.work: list[int] = []

    def new(self) -> int:
        """A node with an empty set."""
        self.points.append(0)
        self.done.append(0)
        self.successors.append(set())
        return len(self.points) - 1

    def add(self, node: int, mask: int) -> None:
        """Put elements into a set."""
        if mask & ~self.points[node]:
            self.points[node] |= mask
            self.work.append(node)

    def edge(self, source: int, target: int) -> None:
        """From now on `target` includes `source`."""
        if source != target and target not in self.successors[source]:
            self.successors[source].add(target)
            self.add(target, self.points[source])

    def flows(self, start: int, targets: Set[int]) -> bool:
        """Whether what is in one node gets into one of others."""
        seen, work = {start}, [start]
        while work:
            node = work.pop()
            if node in targets:
                return True
            fresh = self.successors[node] - seen
            seen |= fresh
            work += fresh
        return False


class ByType:
    """The parts of cells of memory: what was stored as pointers to one type, and what came without a type."""

    def __init__(self, graph: Inclusion) -> None:
        self._graph = graph
        self._parts: dict[int, dict[str, int]] = {}
        self._copies: dict[int, dict[int, None]] = {}  # cell -> those that it is copied to
        self._readers: dict[tuple[int, str], set[int]] = {}

    def stored(self, cell: int, named: str = "") -> int:
        """The part of a cell that was stored as pointers to a type; that without a type."""
        parts = self._parts.setdefault(cell, {})
        found = parts.get(named)
        if found is None:
            found = parts[named] = self._graph.new()
            self._graph.edge(found, cell)
            for target in self._copies.get(cell, ()):
                self._graph.edge(found, self.stored(target, named))
        return found

    def copied(self, cell: int, target: int) -> None:
        """What was stored in a cell, now or later, is copied to another, and is there what it was here."""
        if target not in self._copies.setdefault(cell, {}):
            self._copies[cell][target] = None
            for named, part in tuple(self._parts.get(cell, {}).items()):
                self._graph.edge(part, self.stored(target, named))

    def read(self, cell: int, named: str, target: int) -> tuple[int, int]:
        """The parts of a cell that may be read as pointers to a type."""
        self._readers.setdefault((cell, named), set()).add(target)
        return self.stored(cell, named), self.stored(cell)

    def mistaken(self) -> bool:
        """Let those that read pointers to a type as which nothing is known to be stored read all. True when any did."""
        points = self._graph.points
        for (cell, named), targets in tuple(self._readers.items()):
            if points[cell] and not points[self.stored(cell, named)] | points[self.stored(cell)]:
                for target in targets:
                    self._graph.edge(cell, target)
                del self._readers[cell, named]
        return bool(self._graph.work)
