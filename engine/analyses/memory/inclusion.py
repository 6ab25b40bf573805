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
