"""Natural loops and their nesting; irreducible cycles are reported, not modelled.

A loop is a header together with all blocks that reach a back edge to it without passing it. Found from the inside out
over the dominator tree, every block being attached once (the scheme of LLVM's LoopInfo). The iterations of a loop are
numbered from 0; the number is the symbol that `affine` forms are written in.
"""

from __future__ import annotations

from typing import ClassVar

from irgrad.engine.analyses.control.cfg import Cfg, label
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.ir.model import Block


class Loop:
    """One natural loop.

    blocks     its blocks in reverse postorder, header first (inner loops' blocks included)
    latches    blocks with an edge back to the header
    preheader  the only predecessor outside, when its only successor is the header; else None
    exiting    blocks with an edge that leaves the loop
    exits      blocks outside that such an edge leads to
    depth      1 for an outermost loop
    """

    __slots__ = ("_set", "blocks", "children", "depth", "exiting", "exits", "header", "latches", "parent", "preheader")

    def __init__(self, header: Block) -> None:
        self.header = header
        self.blocks: list[Block] = []
        self._set: set[Block] = set()
        self.latches: list[Block] = []
        self.preheader: Block | None = None
        self.exiting: list[Block] = []
        self.exits: list[Block] = []
        self.parent: Loop | None = None
        self.children: list[Loop] = []
        self.depth = 1

    @property
    def latch(self) -> Block | None:
        """The latch when there is exactly one."""
        return self.latches[0] if len(self.latches) == 1 else None

    def contains(self, item: Block | Loop | None) -> bool:
        """Is the block, or the whole other loop, inside (a loop contains itself; None, no loop, is outside)?"""
        if isinstance(item, Loop):
            return item.header in self._set and item.depth >= self.depth
        return item in self._set

    def ancestors(self) -> list[Loop]:
        """This loop and those around it, innermost first."""
        out, loop = [], self
        while True:
            out.append(loop)
            if loop.parent is None:
                return out
            loop = loop.parent

    def __repr__(self) -> str:
        return f"<loop {label(self.header)} depth {self.depth}>"


class Loops:
    """The loop forest of a function.

    top             outermost loops in reverse postorder of their headers
    all             every loop, outer before inner
    retreating      the edges (from, to) that close a cycle whose target does not dominate their source
    """

    needs: ClassVar[tuple[type, ...]] = (Cfg, Dominators)
    __slots__ = ("_innermost", "all", "cfg", "dom", "retreating", "top")

    def __init__(self, cfg: Cfg, dom: Dominators | None = None) -> None:
        self.cfg = cfg
        self.dom = dom if dom is not None else Dominators(cfg)
        self._innermost: dict[Block, Loop] = {}
        self.retreating: list[tuple[Block, Block]] = []
        back = self._back_edges()
        found: list[Loop] = []
        for header in reversed(cfg.rpo):  # dominators come first in reverse postorder, so inner headers do here
            if header in back:
                found.append(self._discover(header, back[header]))
        self.all: list[Loop] = found[::-1]
        self.top: list[Loop] = []
        for loop in self.all:
            (self.top if loop.parent is None else loop.parent.children).append(loop)
            loop.depth = 1 if loop.parent is None else loop.parent.depth + 1
        self._fill()

    def of(self, block: Block) -> Loop | None:
        """The innermost loop of a block, or None."""
        return self._innermost.get(block)

    def depth(self, block: Block) -> int:
        """Number of loops around a block."""
        loop = self._innermost.get(block)
        return 0 if loop is None else loop.depth

    @property
    def irreducible(self) -> bool:
        """Is there a cycle with more than one entry?"""
        return bool(self.retreating)

    @property
    def offending(self) -> list[Block]:
        """Blocks at which such cycles are closed, in reverse postorder."""
        return sorted({to for _, to in self.retreating}, key=self.cfg.index.__getitem__)

    def _back_edges(self) -> dict[Block, list[Block]]:
        index = self.cfg.index
        back: dict[Block, list[Block]] = {}
        for block in self.cfg.rpo:
            for succ in self.cfg.succs(block):
                if index[succ] > index[block]:
                    continue
                if self.dom.dominates(succ, block):
                    back.setdefault(succ, []).append(block)
                else:
                    self.retreating.append((block, succ))
        return back

    def _discover(self, header: Block, latches: list[Block]) -> Loop:
        loop = Loop(header)
        loop.latches = latches
        work = list(latches)
        dominates = self.dom.dominates
        while work:
            block = work.pop()
            inner = self._innermost.get(block)
            if inner is None:
                self._innermost[block] = loop
                if block is not header:
                    work.extend(self.cfg.preds(block))
                continue
            while inner.parent is not None:
                inner = inner.parent
            if inner is not loop:
                inner.parent = loop
                work.extend(p for p in self.cfg.preds(inner.header) if not dominates(inner.header, p))
        return loop

    def _fill(self) -> None:
        for block in self.cfg.rpo:
            loop = self._innermost.get(block)
            while loop is not None:
                loop.blocks.append(block)
                loop._set.add(block)
                loop = loop.parent
        for loop in self.all:
            exits: dict[Block, None] = {}
            for block in loop.blocks:
                leaving = [s for s in self.cfg.succs(block) if s not in loop._set]
                if leaving:
                    loop.exiting.append(block)
                    exits.update(dict.fromkeys(leaving))
            loop.exits = list(exits)
            outside = [p for p in self.cfg.preds(loop.header) if p not in loop._set]
            if len(outside) == 1 and len(self.cfg.succs(outside[0])) == 1:
                loop.preheader = outside[0]

    def __str__(self) -> str:
        lines = [f"loops of @{self.cfg.fn.name}: {len(self.all)}"]
        for loop in self.all:
            pad = "  " * loop.depth
            names = [
                f"latches {' '.join(map(label, loop.latches))}",
                f"preheader {label(loop.preheader) if loop.preheader is not None else 'none'}",
                f"exiting {' '.join(map(label, loop.exiting)) or 'none'}",
                f"{len(loop.blocks)} blocks",
            ]
            lines.append(f"{pad}{label(loop.header)}: {', '.join(names)}")
        lines.extend(f"  irreducible: {label(a)} -> {label(b)}" for a, b in self.retreating)
        return "\n".join(lines)
