"""Functions made from graphs, and naive searches in graphs, for tests of control-flow analyses."""

from __future__ import annotations

import random

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function


def graph_function(edges: list[list[int]]) -> Function:
    """A function whose block i leads to the blocks edges[i] (none: it returns)."""
    fn = Function("g", ty.function(ty.VOID, (ty.I32,)), ["x"])
    fn.blocks = [Block(f"b{i}") for i in range(len(edges))]
    for block, targets in zip(fn.blocks, edges, strict=True):
        block.function = fn
        builder = Builder(block)
        to = [fn.blocks[t] for t in targets]
        if not to:
            builder.ret()
        elif len(to) == 1:
            builder.br(to[0])
        else:
            builder.switch(fn.args[0], to[0], [(ConstInt(ty.I32, i), b) for i, b in enumerate(to[1:])])
    return fn


def random_edges(rng: random.Random, n: int) -> list[list[int]]:
    """Random successors; the entry has no predecessor, as LLVM demands."""
    return [[rng.randrange(1, n) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))] if n > 1 else [] for _ in range(n)]


def naive_reach(edges: list[list[int]], start: int) -> set[int]:
    """Nodes at the end of a path of at least one edge."""
    seen: set[int] = set()
    work = list(edges[start])
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work.extend(edges[node])
    return seen
