"""Which values to save: a minimum cut between what must be saved and what the reverse sweep asks for.

Nodes are values that the reverse sweep needs, directly or to compute others again, and that cannot be had for
nothing. A value that can be computed again hangs on its operands; one that cannot hangs on the source. Cutting a
node means saving it. Its capacity is its size in bytes, times a weight for each loop around it. An arc from the source
to a value that can be computed again has the cost of doing so. Any set of saved values that separates the source from
the demands is enough; the cut finds the cheapest.

Source of the method: rematerialisation as a graph cut, as for checkpointing joint graphs; here weighted by bytes and
loop depth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from irgrad.engine.ir.model import Instruction

INFINITE = 1 << 60
LOOP_WEIGHT = 16  # how often a loop runs, for want of better
MAX_NODES = 4000
MAX_DEPTH = 64


class Network:
    """A flow network with integer capacities (Dinic's algorithm)."""

    __slots__ = ("capacity", "edges", "head")

    def __init__(self, count: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(count)]
        self.head: list[int] = []
        self.capacity: list[int] = []

    def add(self, a: int, b: int, capacity: int) -> None:
        """An edge and its reverse."""
        self.edges[a].append(len(self.head))
        self.head.append(b)
        self.capacity.append(capacity)
        self.edges[b].append(len(self.head))
        self.head.append(a)
        self.capacity.append(0)

    def levels(self, source: int) -> list[int]:
        """Breadth-first distance in the residual network; -1 where it cannot be reached."""
        level = [-1] * len(self.edges)
        level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in self.edges[a]:
                b = self.head[e]
                if self.capacity[e] > 0 and level[b] < 0:
                    level[b] = level[a] + 1
                    queue.append(b)
        return level

    def reaching(self, sink: int) -> list[bool]:
        """Nodes from which the sink can be reached in the residual network."""
        found = [False] * len(self.edges)
        found[sink] = True
        queue = deque([sink])
        while queue:
            b = queue.popleft()
            for e in self.edges[b]:
                a = self.head[e]
                if not found[a] and self.capacity[e ^ 1] > 0:
                    found[a] = True
                    queue.append(a)
        return found

    def run(self, source: int, sink: int) -> list[int]:
        """Maximise the flow; returns the final levels."""
        while True:
            level = self.levels(source)
            if level[sink] < 0:
                return level
            cursor = [0] * len(self.edges)
            while self._augment(source, sink, level, cursor):
                pass

    def _augment(self, source: int, sink: int, level: list[int], cursor: list[int]) -> bool:
        path: list[int] = []
        node = source
        while node != sink:
            edges, e = self.edges[node], -1
            while cursor[node] < len(edges):
                e = edges[cursor[node]]
                if self.capacity[e] > 0 and level[self.head[e]] == level[node] + 1:
                    break
                cursor[node] += 1
            if cursor[node] == len(edges):
                if not path:
                    return False
                e = path.pop()
                node = self.head[e ^ 1]
                cursor[node] += 1
                continue
            path.append(e)
            node = self.head[e]
        amount = min(self.capacity[e] for e in path)
        for e in path:
            self.capacity[e] -= amount
            self.capacity[e ^ 1] += amount
        return amount > 0


def choose(
    demands: Iterable[Instruction],
    operands: Callable[[Instruction], list[Instruction] | None],
    price: Callable[[Instruction], int],
    again: Callable[[Instruction], int] = lambda _: 0,
) -> tuple[set[Instruction], set[Instruction]]:
    """(values to save, values to compute again).

    operands(v)  what computing v again needs besides what is free; None when v must be saved
    price(v)     the cost of saving v
    again(v)     the cost of computing v again
    """
    wanted = list(dict.fromkeys(demands))
    needs: dict[Instruction, list[Instruction] | None] = {}
    stack = list(wanted)
    while stack:
        value = stack.pop()
        if value in needs:
            continue
        needs[value] = operands(value)
        stack += needs[value] or []
        if len(needs) > MAX_NODES:
            return set(wanted), set()
    number = {value: i for i, value in enumerate(needs)}
    source, sink = 2 * len(number), 2 * len(number) + 1
    net = Network(2 * len(number) + 2)
    for value, parts in needs.items():
        i = number[value]
        net.add(2 * i, 2 * i + 1, price(value))
        if parts is None:
            net.add(source, 2 * i, INFINITE)
        elif cost := again(value):
            net.add(source, 2 * i, cost)
        for part in parts or ():
            net.add(2 * number[part] + 1, 2 * i, INFINITE)
    for value in wanted:
        net.add(2 * number[value] + 1, sink, INFINITE)
    net.run(source, sink)
    below = net.reaching(sink)  # of equal cuts the one next to the demands: least to compute again
    saved = {v for v, i in number.items() if not below[2 * i] and below[2 * i + 1]}
    return saved, _again(wanted, needs, saved)


def _again(
    wanted: list[Instruction], needs: dict[Instruction, list[Instruction] | None], saved: set[Instruction]
) -> set[Instruction]:
    """Values between the cut and the demands; where a chain of them gets long, its middle is saved after all."""
    depth: dict[Instruction, int] = {}
    stack = [v for v in wanted if v not in saved]
    while stack:
        value = stack[-1]
        if value in depth or value in saved:
            stack.pop()
            continue
        missing = [p for p in needs[value] or () if p not in saved and p not in depth]
        if missing:
            stack += missing
            continue
        depth[value] = 1 + max((depth.get(p, 0) for p in needs[value] or ()), default=0)
        if depth[value] > MAX_DEPTH:
            saved.add(value)
            del depth[value]
    return set(depth)
