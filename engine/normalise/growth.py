"""Containers that have room enough do not grow: the branch that would make them larger goes.

    v.reserve(n);                             end = begin = new(8 n), limit = begin + 8 n
    for (i = 0; i < n; i++)                   loop:  if (end == limit) begin, end, limit = ...      ; twice as large
        v.push_back(g(i));                           *end++ = g(i)

Whether the branch is taken depends on what it would change, so that no pass sees that it never is. But suppose that
none of these branches is ever taken: `end` is then begin + 8 i, and i is less than n, so that none is. The first time
that one were would contradict that, since all iterations before went as supposed. (What the proof knows is of this
kind: comparisons on the way, counts of loops, addresses that stay in their memory.) Where some iterations append and
others do not, `end` is at most that. The addresses of elements are then those of an array; otherwise the reverse sweep
wants each of them from the tape, with the way that each iteration went.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.overwrites import Overwrites
from irgrad.engine.analyses.evolution.overwrites import ordered as order_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.scratch import allocates

__all__ = ["drop_growth"]

_MOST = 64  # branches of a function
_DEPTH = 3  # phis of which each way is looked at
_DEEP = 12  # steps on the way from an address to its base


@dataclass(frozen=True, slots=True)
class _Growth:
    """A branch of which one way allocates. compare: what it asks; way: 0 or 1, which of its targets it never takes."""

    block: Block
    compare: Instruction
    way: int


def drop_growth(fn: Function) -> int:
    """Leave out branches to allocations in loops that are never taken. Returns how many."""
    rows = _candidates(fn)
    while rows:
        before = _Saved(fn)
        _cut(fn, rows)
        there = get(Cfg, fn).reachable
        asked = [row for row in rows if row.block in there]  # the others stand behind one of these
        failed = [row for row in asked if not _never(fn, row)]
        if not failed:
            return len(asked)
        before.restore()
        rows = [row for row in rows if row not in failed]
    return 0


def _candidates(fn: Function) -> list[_Growth]:
    calls = [i for i in fn.instructions() if i.opcode == "call" and allocates(i)]
    loops = get(Loops, fn) if calls else None
    if loops is None or loops.irreducible:
        return []
    cfg, found = loops.cfg, dict[tuple[Block, int], _Growth]()
    for call in calls:
        block = call.block
        while block is not None and loops.of(block) is not None and (above := loops.dom.idom(block)) is not None:
            row = _asked(above, block, cfg)
            if row is not None and loops.of(above) is not None:
                found[above, row.way] = row
            block = above
    rows = [row for (block, way), row in found.items() if (block, 1 - way) not in found]
    return rows if len(rows) <= _MOST else []


def _asked(above: Block, block: Block, cfg: Cfg) -> _Growth | None:
    """The comparison of which one outcome alone leads into a block."""
    end = above.terminator
    if end.opcode != "br" or len(end.blocks) != 2 or end.blocks[0] is end.blocks[1] or block not in end.blocks:
        return None
    asked = end.operands[0]
    if not isinstance(asked, Instruction) or asked.opcode != "icmp" or cfg.preds(block) != [above]:
        return None
    return _Growth(above, asked, end.blocks.index(block))


class _Saved:
    """A function as it was: blocks, instructions, operands."""

    def __init__(self, fn: Function) -> None:
        self.fn, self.blocks = fn, list(fn.blocks)
        self.instructions = [list(block.instructions) for block in fn.blocks]
        self.operands = [(i, list(i.operands), list(i.blocks), dict(i.metadata)) for i in fn.instructions()]

    def restore(self) -> None:
        """Make it so again."""
        self.fn.blocks[:] = self.blocks
        for block, instructions in zip(self.blocks, self.instructions, strict=True):
            block.instructions[:] = instructions
        for instr, operands, blocks, metadata in self.operands:
            instr.operands, instr.blocks, instr.metadata = operands, blocks, metadata


def _cut(fn: Function, rows: Iterable[_Growth]) -> None:
    """No branch goes the way that is never taken; what is behind it goes, and phis that are one value."""
    for row in rows:
        end = row.block.terminator
        end.operands, end.blocks = [], [end.blocks[1 - row.way]]
        end.metadata = {kind: note for kind, note in end.metadata.items() if kind != "prof"}
    there = get(Cfg, fn).reachable
    fn.blocks[:] = [block for block in fn.blocks if block in there]
    cfg, fewer = get(Cfg, fn), set[Block]()
    for block in fn.blocks:
        before = cfg.preds(block)
        for phi in block.phis:
            kept = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b in before]
            if len(kept) < len(phi.operands):
                fewer.add(block)
                phi.operands, phi.blocks = [v for v, _ in kept], [b for _, b in kept]
    _drop_phis(fn, fewer)


def _drop_phis(fn: Function, fewer: set[Block]) -> None:
    """Phis that hand on one value go: those of blocks with fewer ways in, of loops that do not change it, and those
    behind loops of what is of no loop any more."""
    loops = get(Loops, fn)
    while True:
        replaced: dict[Value, Value] = {}
        for block in fn.blocks:
            for phi in block.phis:
                values = [v for v in dict.fromkeys(phi.operands) if v is not phi]
                alone = len(values) == 1 and values[0] not in replaced
                if alone and (block in fewer or _as_near(loops, values[0], block)):
                    replaced[phi] = values[0]
        if not replaced:
            return
        for block in fn.blocks:
            block.instructions[:] = [i for i in block.instructions if i not in replaced]
        replace_uses(fn, replaced)


def _as_near(loops: Loops, value: Value, block: Block) -> bool:
    """Whether a value is not one of a loop that is over in a block."""
    own = loops.of(value.block) if isinstance(value, Instruction) and value.block is not None else None
    return own is None or own.contains(block)


# -- the proof --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Range:
    """An integer, or how far an address is behind its base: between two forms, over the integers."""

    base: Value | None
    least: Affine
    most: Affine

    def plus(self, other: _Range) -> _Range:
        """Of an address from the base of another range."""
        return _Range(other.base, self.least.plus(other.least), self.most.plus(other.most))


def _never(fn: Function, row: _Growth) -> bool:
    """Whether the way is not taken in any iteration, given that none of the ways is before."""
    return _Proof(fn, row).holds()


class _Proof:
    def __init__(self, fn: Function, row: _Growth) -> None:
        self.row, self.forms = row, Induction(fn)
        self.loops, self.asked = self.forms.loops, Overwrites(self.forms)
        self.known = dict(self._decided(row.block))

    def holds(self) -> bool:
        compare, way = self.row.compare, self.row.way
        order, pointers = order_of(compare.pred or "", way == 1), compare.operands[0].type.is_ptr  # what has to hold
        unsigned = (compare.pred or "")[0] == "u" and not pointers
        left, right = map(self._range, compare.operands)
        pairs = list(self._pairs(left, right, _DEPTH))
        return bool(pairs) and all(pair is not None and self._ordered(*pair, order, unsigned) for pair in pairs)

    def _ordered(self, left: _Range, right: _Range, order: str, unsigned: bool) -> bool:
        above, below = (left.least, right.most), (right.least, left.most)
        ways = {"g": [above], "l": [below], "n": [above, below], "e": []}[order[0]]
        more = 0 if order in ("ge", "le") else 1
        nought = Affine(64, 0)
        natural = not unsigned or all(self._no_less(side.least, nought) for side in (left, right))
        return natural and any(self._no_less(high, low.moved(more)) for high, low in ways)

    def _no_less(self, high: Affine, low: Affine) -> bool:
        exact = high.exact and low.exact
        return exact and self.asked.no_less(high, low, self.row.compare, self.row.block)

    # -- what is compared ----------------------------------------------------------------------------------------------

    def _pairs(self, left: _Range | None, right: _Range | None, depth: int) -> Iterable[tuple[_Range, _Range] | None]:
        """What is compared, from one base; one pair for each way to phis of different bases that may have been gone."""
        if left is None or right is None:
            yield None
        elif left.base is right.base:
            yield left, right
        else:
            first, second = left.base, right.base
            phis = [v for v in (first, second) if isinstance(v, Instruction) and v.opcode == "phi"]
            if len(phis) < 2 or phis[0].block is not phis[1].block or not depth or self._heads(phis[0]):
                yield None
                return
            for a, b, block in zip(phis[0].operands, _along(phis[1], phis[0].blocks), phis[0].blocks, strict=True):
                if not self._contradicted(block, phis[0].block):
                    one, other = self._range(a), self._range(b)
                    moved = (None if one is None else left.plus(one)), (None if other is None else right.plus(other))
                    yield from self._pairs(*moved, depth - 1)

    def _range(self, value: Value) -> _Range | None:
        if isinstance(value.type, ty.IntType):
            form = self.forms.form(value)
            return _Range(None, form, form)
        if not value.type.is_ptr:
            return None
        root, least, most = self._walk(value)
        base, offset = self.forms.address(root)
        if base is root and isinstance(root, Instruction) and self._heads(root):
            own = self._advanced(root)
            if own is not None:
                return _Range(own.base, own.least.moved(least), own.most.moved(most))
        return _Range(base, offset.moved(least), offset.moved(most))

    def _advanced(self, phi: Instruction) -> _Range | None:
        """A pointer that iterations move by constants, not all of them by the same."""
        loop = self.loops.of(phi.block) if phi.block is not None else None
        if loop is None or loop.latch is None or loop.preheader is None:
            return None
        root, least, most = self._walk(phi.operands[phi.blocks.index(loop.latch)])
        start = self._range(phi.operands[phi.blocks.index(loop.preheader)])
        if root is not phi or start is None:
            return None
        return _Range(start.base, start.least.plus(Affine(64, 0, {loop: least}) if least else Affine(64, 0)),
                      start.most.plus(Affine(64, 0, {loop: most}) if most else Affine(64, 0)))  # fmt: skip

    def _walk(self, value: Value, depth: int = _DEEP) -> tuple[Value, int, int]:
        """What an address is some constant behind, the least and the most of them, on all ways of an iteration."""
        if not isinstance(value, Instruction) or not depth:
            return value, 0, 0
        if value.opcode == "getelementptr" and "inbounds" in value.flags and len(value.operands) == 2:
            index = value.operands[1]
            if isinstance(index, ConstInt) and value.elem is not None:
                root, least, most = self._walk(value.operands[0], depth - 1)
                by = index.value * ty.size_of(value.elem)
                return root, least + by, most + by
        if value.opcode == "phi" and not self._heads(value):
            rows = [self._walk(operand, depth - 1) for operand in dict.fromkeys(value.operands)]
            if len({row[0] for row in rows}) == 1:
                return rows[0][0], min(row[1] for row in rows), max(row[2] for row in rows)
        return value, 0, 0

    def _heads(self, phi: Instruction) -> bool:
        loop = self.loops.of(phi.block) if phi.block is not None and phi.opcode == "phi" else None
        return loop is not None and loop.header is phi.block

    # -- which way was gone --------------------------------------------------------------------------------------------

    def _contradicted(self, block: Block, to: Block | None) -> bool:
        """Whether control that goes from one block to the other never comes to the branch."""
        end = block.terminator
        rows = list(self._decided(block))
        if end.opcode == "br" and len(set(end.blocks)) == 2:
            rows.append((end.operands[0], end.blocks[0] is to))
        return any(self.known.get(value, outcome) is not outcome for value, outcome in rows)

    def _decided(self, block: Block) -> Iterable[tuple[Value, bool]]:
        """Conditions that are found once in a call, with what they are where control comes to a block."""
        dom, cfg = self.loops.dom, self.loops.cfg
        while (above := dom.idom(block)) is not None:
            end = above.terminator
            before = [p for p in cfg.preds(block) if not dom.dominates(block, p)]
            if before == [above] and end.opcode == "br" and len(set(end.blocks)) == 2:
                asked = end.operands[0]
                if not isinstance(asked, Instruction) or (asked.block and self.loops.of(asked.block) is None):
                    yield asked, end.blocks[0] is block
            block = above


def _along(phi: Instruction, blocks: Iterable[Block]) -> list[Value]:
    return [phi.operands[phi.blocks.index(block)] for block in blocks]
