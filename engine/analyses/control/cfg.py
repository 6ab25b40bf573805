"""The control-flow graph of a function: predecessors, successors, orders, reachability between blocks.

A snapshot: build it again after the function changed. Nothing here recurses, so depth is bounded by memory only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irgrad.engine.ir.model import Block, Function

_CLOSURE_LIMIT = 20_000  # components up to which all reachability bitsets are kept at once (25 MB at most)


class Cfg:
    """Control-flow graph over the blocks that can be reached from the entry.

    rpo        reachable blocks in reverse postorder (entry first)
    reachable  the same blocks as a set
    index      block -> its position in `rpo` (reachable blocks only)
    """

    needs: ClassVar[tuple[type, ...]] = ()
    __slots__ = ("_bits", "_component", "_components", "_cyclic", "_preds", "_succs", "fn", "index", "reachable", "rpo")

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self._succs: dict[Block, list[Block]] = {b: list(dict.fromkeys(b.successors)) for b in fn.blocks}
        self.rpo: list[Block] = self._reverse_postorder()
        self.index: dict[Block, int] = {b: i for i, b in enumerate(self.rpo)}
        self.reachable: frozenset[Block] = frozenset(self.rpo)
        self._preds: dict[Block, list[Block]] = {b: [] for b in fn.blocks}
        for block in fn.blocks:
            if block in self.reachable:
                for succ in self._succs[block]:
                    self._preds[succ].append(block)
        self._component: list[int] | None = None  # rpo index -> component, sinks first
        self._components: list[list[int]] = []
        self._cyclic: list[bool] = []
        self._bits: dict[int, int] = {}

    def _reverse_postorder(self) -> list[Block]:
        if not self.fn.blocks:
            return []
        entry = self.fn.blocks[0]
        seen = {entry}
        order: list[Block] = []
        # Successors are visited last first, so that the reverse postorder follows the text where it can.
        stack = [(entry, iter(reversed(self._succs[entry])))]
        while stack:
            block, rest = stack[-1]
            for succ in rest:
                if succ not in seen:
                    seen.add(succ)
                    stack.append((succ, iter(reversed(self._succs[succ]))))
                    break
            else:
                stack.pop()
                order.append(block)
        order.reverse()
        return order

    @property
    def postorder(self) -> list[Block]:
        """Reachable blocks, each after its successors except along retreating edges."""
        return self.rpo[::-1]

    def succs(self, block: Block) -> list[Block]:
        """Successors without repetitions, in the terminator's order."""
        return self._succs[block]

    def preds(self, block: Block) -> list[Block]:
        """Reachable predecessors without repetitions, in block order."""
        return self._preds[block]

    def components(self) -> list[list[Block]]:
        """Strongly connected components of the reachable graph, each after those it leads to (sinks first)."""
        self._condense()
        return [[self.rpo[i] for i in sorted(part)] for part in self._components]

    def in_cycle(self, block: Block) -> bool:
        """May the block run more than once in one call of the function?"""
        return self.reaches(block, block)

    def reaches(self, a: Block, b: Block) -> bool:
        """May `b` begin after `a` has ended, in one call: is there a path of at least one edge from `a` to `b`?"""
        if a not in self.index or b not in self.index:
            return False
        component = self._condense()
        from_, to = component[self.index[a]], component[self.index[b]]
        if from_ == to:
            return self._cyclic[from_]
        if to > from_:  # components are numbered sinks first
            return False
        return bool(self._reach(from_) >> to & 1)

    def _condense(self) -> list[int]:
        if self._component is None:
            graph = [[self.index[s] for s in self._succs[b]] for b in self.rpo]
            self._components = strongly_connected(graph)
            self._component = [0] * len(graph)
            for number, part in enumerate(self._components):
                for node in part:
                    self._component[node] = number
            self._cyclic = [len(part) > 1 or part[0] in graph[part[0]] for part in self._components]
        return self._component

    def _reach(self, start: int) -> int:
        """Bitset of the components reachable from component `start` (itself left out)."""
        if start in self._bits:
            return self._bits[start]
        if len(self._components) > _CLOSURE_LIMIT:
            return self._search(start)
        # Sinks first: every component below `start` is known when it is needed.
        for number in range(len(self._bits), start + 1):
            bits = 0
            for succ in self._leaving(number):
                bits |= self._bits[succ] | 1 << succ
            self._bits[number] = bits
        return self._bits[start]

    def _leaving(self, number: int) -> set[int]:
        component = self._condense()
        found = {component[self.index[s]] for node in self._components[number] for s in self._succs[self.rpo[node]]}
        found.discard(number)
        return found

    def _search(self, start: int) -> int:
        if len(self._bits) > 256:
            self._bits.clear()
        seen, stack = {start}, [start]
        while stack:
            for succ in self._leaving(stack.pop()):
                if succ not in seen:
                    seen.add(succ)
                    stack.append(succ)
        seen.discard(start)
        mask = bytearray(start // 8 + 1)
        for number in seen:
            mask[number >> 3] |= 1 << (number & 7)
        self._bits[start] = int.from_bytes(mask, "little")
        return self._bits[start]

    def __str__(self) -> str:
        lines = [f"cfg of @{self.fn.name}: {len(self.rpo)} blocks reachable of {len(self.fn.blocks)}"]
        for block in self.rpo:
            succs = " ".join(label(s) for s in self._succs[block]) or "(leaves)"
            lines.append(f"  {label(block)} -> {succs}")
        return "\n".join(lines)


def label(block: Block) -> str:
    """A block's name for reports; blocks without one are told apart by their position."""
    if block.name is not None:
        return f"%{block.name}"
    if block.function is not None and block in block.function.blocks:
        return f"%<block {block.function.blocks.index(block)}>"
    return "%<block>"


def strongly_connected(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """Tarjan's strongly connected components of a graph over 0..n-1, sinks first (iterative; linear time)."""
    n = len(graph)
    number = [0] * n  # 0: not seen
    low = [0] * n
    on_stack = [False] * n
    path: list[int] = []
    out: list[list[int]] = []
    counter = 0
    for root in range(n):
        if number[root]:
            continue
        counter += 1
        number[root] = low[root] = counter
        path.append(root)
        on_stack[root] = True
        work = [(root, iter(graph[root]))]
        while work:
            node, rest = work[-1]
            for succ in rest:
                if not number[succ]:
                    counter += 1
                    number[succ] = low[succ] = counter
                    path.append(succ)
                    on_stack[succ] = True
                    work.append((succ, iter(graph[succ])))
                    break
                if on_stack[succ] and number[succ] < low[node]:
                    low[node] = number[succ]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == number[node]:
                    part = []
                    while True:
                        member = path.pop()
                        on_stack[member] = False
                        part.append(member)
                        if member == node:
                            break
                    out.append(part)
    return out
