"""Sets that include one another: nodes with a set each, as a bit mask, and edges along which the sets flow."""

from __future__ import annotations

from collections.abc import Set

from irgrad.engine.analyses.memory.access_paths import UNNAMED, AccessPath, AccessPaths


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
    """The parts of cells of memory: what was stored by each access path, and what came without one. `paths` says which
    may be one place, and what becomes of them in copies."""

    def __init__(self, graph: Inclusion, paths: AccessPaths) -> None:
        self._graph = graph
        self._paths = paths
        self._parts: dict[int, dict[AccessPath, int]] = {}
        self._copies: dict[int, dict[int, None]] = {}  # cell -> those that it is copied to
        self._readers: dict[int, dict[AccessPath, int]] = {}

    def stored(self, cell: int, path: AccessPath = UNNAMED) -> int:
        """The part of a cell that was stored by a path; that without one."""
        parts = self._parts.setdefault(cell, {})
        found = parts.get(path)
        if found is None:
            found = parts[path] = self._graph.new()
            self._graph.edge(found, cell)
            for target in self._copies.get(cell, ()):
                self._graph.edge(found, self.stored(target, self._paths.copied(path)))
            for wanted, reader in self._readers.get(cell, {}).items():
                if self._paths.meet(path, wanted):
                    self._graph.edge(found, reader)
        return found

    def copied(self, cell: int, target: int) -> None:
        """What was stored in a cell, now or later, is copied to another, and leads there to what it did here."""
        if target not in self._copies.setdefault(cell, {}):
            self._copies[cell][target] = None
            for path, part in tuple(self._parts.get(cell, {}).items()):
                self._graph.edge(part, self.stored(target, self._paths.copied(path)))

    def read(self, cell: int, path: AccessPath) -> int:
        """The parts of a cell that may be read by a path."""
        readers = self._readers.setdefault(cell, {})
        found = readers.get(path)
        if found is None:
            found = readers[path] = self._graph.new()
            for stored, part in self._parts.get(cell, {}).items():
                if self._paths.meet(stored, path):
                    self._graph.edge(part, found)
        return found

    def mistaken(self) -> bool:
        """Let those read by less than their path by which nothing is known to be stored: by a type that nothing in the
        cell has, all; by a member that nothing anywhere was stored to, what has the type. True when there were any."""
        points = self._graph.points
        found = {path for parts in self._parts.values() for path, part in parts.items() if points[part]}
        for cell, readers in self._readers.items():
            for path, reader in readers.items() if points[cell] else ():
                if points[reader] or path.believed:
                    continue
                alike = [part for stored, part in self._parts.get(cell, {}).items() if self._paths.alike(stored, path)]
                if not any(points[part] for part in alike):
                    self._graph.edge(cell, reader)
                elif not any(self._paths.meet(stored, path) for stored in found):
                    for part in alike:
                        self._graph.edge(part, reader)
        return bool(self._graph.work)
