"""Dominator and post-dominator trees.

Method: T. Lengauer and R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph", TOPLAS 1(1), 1979, the
simple variant with path compression: O(m log n) on every graph, irreducible ones and long clean-up chains included.
Dominance queries are O(1) by numbering the tree in depth-first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irgrad.engine.analyses.control.cfg import Cfg, label
from irgrad.engine.ir.model import Argument, Block, Constant, Instruction, Value


class _Tree:
    """A dominator tree over nodes 0..n-1 (-1 in `parent`: root or not reached), with interval numbers."""

    __slots__ = ("enter", "kids", "leave", "parent")

    def __init__(self, parent: list[int], root: int) -> None:
        self.parent = parent
        n = len(parent)
        self.kids: list[list[int]] = [[] for _ in range(n)]
        for node, up in enumerate(parent):
            if up >= 0:
                self.kids[up].append(node)
        self.enter = [-1] * n
        self.leave = [-1] * n
        clock = 0
        stack = [root]
        while stack:
            node = stack.pop()
            if node < 0:
                self.leave[~node] = clock
                continue
            self.enter[node] = clock
            clock += 1
            stack.append(~node)
            stack.extend(reversed(self.kids[node]))

    def covers(self, a: int, b: int) -> bool:
        return self.enter[a] >= 0 and self.enter[a] <= self.enter[b] < self.leave[a]


class Dominators:
    """Dominator tree of the reachable blocks of `cfg`."""

    needs: ClassVar[tuple[type, ...]] = (Cfg,)
    __slots__ = ("_positions", "_tree", "cfg")

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        graph = [[cfg.index[s] for s in cfg.succs(b)] for b in cfg.rpo]
        self._tree = _Tree(immediate_dominators(graph, 0), 0) if graph else _Tree([], -1)
        self._positions: dict[Block, dict[Instruction, int]] = {}

    def idom(self, block: Block) -> Block | None:
        """The immediate dominator; None for the entry and for blocks never reached."""
        node = self.cfg.index.get(block)
        up = -1 if node is None else self._tree.parent[node]
        return None if up < 0 else self.cfg.rpo[up]

    def children(self, block: Block) -> list[Block]:
        """Blocks whose immediate dominator is `block`."""
        return [self.cfg.rpo[i] for i in self._tree.kids[self.cfg.index[block]]]

    def dominates(self, a: Block, b: Block) -> bool:
        """Does every path from the entry to `b` pass `a`? (A block dominates itself; unreachable `b`: True.)"""
        index = self.cfg.index
        if b not in index:
            return True
        return a in index and self._tree.covers(index[a], index[b])

    def strictly_dominates(self, a: Block, b: Block) -> bool:
        """Dominates and is another block."""
        return a is not b and self.dominates(a, b)

    def common(self, a: Block, b: Block) -> Block:
        """The nearest block that dominates both of two reachable blocks."""
        x, y = self.cfg.index[a], self.cfg.index[b]
        while not self._tree.covers(x, y):
            x = self._tree.parent[x]
        return self.cfg.rpo[x]

    def position(self, instr: Instruction) -> int:
        """Index of an instruction in its block, as of the first question about that block."""
        block = instr.block
        assert block is not None
        if block not in self._positions:
            self._positions[block] = {item: i for i, item in enumerate(block.instructions)}
        return self._positions[block][instr]

    def value_dominates(self, value: Value, use: Instruction) -> bool:
        """Is `value` available where `use` reads it? For a phi: at the end of each block it comes from by."""
        if isinstance(value, Constant | Argument):
            return True
        if not isinstance(value, Instruction) or value.block is None or use.block is None:
            return False
        if use.opcode == "phi":
            froms = [b for v, b in zip(use.operands, use.blocks, strict=True) if v is value]
            if froms:
                return all(self.dominates(_available_in(value), b) for b in froms)
        if value.block is use.block:
            return self.position(value) < self.position(use)
        return self.dominates(_available_in(value), use.block)

    def __str__(self) -> str:
        lines = [f"dominators of @{self.cfg.fn.name}"]
        stack = [(0, 0)] if self.cfg.rpo else []
        while stack:
            node, depth = stack.pop()
            lines.append("  " * (depth + 1) + label(self.cfg.rpo[node]))
            stack.extend((kid, depth + 1) for kid in reversed(self._tree.kids[node]))
        return "\n".join(lines)


def _available_in(value: Instruction) -> Block:
    """The block from whose start on (own block: from its definition on) the value exists: an invoke's normal target."""
    assert value.block is not None
    return value.blocks[0] if value.opcode == "invoke" else value.block


class PostDominators:
    """Post-dominator tree, rooted at a virtual exit behind every block that leaves the function.

    A block from which no exit can be reached (an endless loop) has no post-dominator but itself.
    """

    needs: ClassVar[tuple[type, ...]] = (Cfg,)
    __slots__ = ("_tree", "cfg")

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        n = len(cfg.rpo)
        graph = [[cfg.index[p] for p in cfg.preds(b)] for b in cfg.rpo]
        graph.append([i for i, b in enumerate(cfg.rpo) if not cfg.succs(b)])
        self._tree = _Tree(immediate_dominators(graph, n), n)

    def ipdom(self, block: Block) -> Block | None:
        """The immediate post-dominator; None where that is the virtual exit or no exit is reached."""
        up = self._tree.parent[self.cfg.index[block]]
        return None if up < 0 or up == len(self.cfg.rpo) else self.cfg.rpo[up]

    def dominates(self, a: Block, b: Block) -> bool:
        """Does every path from `b` out of the function pass `a`?"""
        return a is b or self._tree.covers(self.cfg.index[a], self.cfg.index[b])

    def control_dependences(self) -> dict[Block, list[Block]]:
        """For each block, the branching blocks that decide whether it runs (Ferrante, Ottenstein, Warren 1987)."""
        index, rpo, parent = self.cfg.index, self.cfg.rpo, self._tree.parent
        out: dict[Block, list[Block]] = {b: [] for b in rpo}
        for branch in rpo:
            succs = self.cfg.succs(branch)
            if len(succs) < 2:
                continue
            stop, seen = parent[index[branch]], set()
            for succ in succs:
                node = index[succ]
                while node not in (stop, -1, len(rpo)) and node not in seen:
                    seen.add(node)
                    out[rpo[node]].append(branch)
                    node = parent[node]
        return out


def immediate_dominators(graph: Sequence[Sequence[int]], root: int) -> list[int]:
    """Immediate dominator of each node of a flow graph; -1 for the root and for nodes not reached."""
    n = len(graph)
    order, parent, number = _depth_first(graph, root)
    preds: list[list[int]] = [[] for _ in range(n)]
    for node in order:
        for succ in graph[node]:
            preds[succ].append(node)
    semi = number[:]  # semidominator as a depth-first number
    ancestor = [-1] * n
    best = list(range(n))  # node of least semidominator on the compressed path
    idom = [-1] * n
    buckets: list[list[int]] = [[] for _ in range(n)]

    def find(node: int) -> int:
        if ancestor[node] < 0:
            return node
        path = []
        while ancestor[ancestor[node]] >= 0:
            path.append(node)
            node = ancestor[node]
        for item in reversed(path):
            up = ancestor[item]
            if semi[best[up]] < semi[best[item]]:
                best[item] = best[up]
            ancestor[item] = ancestor[up]
        return best[path[0]] if path else best[node]

    for node in reversed(order[1:]):
        least = semi[node]
        for pred in preds[node]:
            least = min(least, semi[find(pred)])
        semi[node] = least
        buckets[order[least]].append(node)
        up = parent[node]
        ancestor[node] = up
        for item in buckets[up]:
            other = find(item)
            idom[item] = other if semi[other] < semi[item] else up
        buckets[up].clear()
    for node in order[1:]:
        if idom[node] != order[semi[node]]:
            idom[node] = idom[idom[node]]
    return idom


def _depth_first(graph: Sequence[Sequence[int]], root: int) -> tuple[list[int], list[int], list[int]]:
    """Nodes in depth-first order, tree parents, and depth-first numbers (-1: not reached)."""
    number, parent = [-1] * len(graph), [-1] * len(graph)
    order = [root]
    number[root] = 0
    stack = [(root, iter(graph[root]))]
    while stack:
        node, rest = stack[-1]
        for succ in rest:
            if number[succ] < 0:
                number[succ] = len(order)
                parent[succ] = node
                order.append(succ)
                stack.append((succ, iter(graph[succ])))
                break
        else:
            stack.pop()
    return order, parent, number
