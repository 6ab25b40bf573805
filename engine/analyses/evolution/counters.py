"""Counters of a loop: header phis whose next values follow from the phis alone."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.earlier import PURE
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.ir.rewrite import copied

__all__ = ["advance", "following", "only_counters"]


def only_counters(loop: Loop) -> bool:
    """Whether all header phis of a loop with one latch, and its exit's condition, depend on nothing else in it."""
    assert loop.latch is not None
    last = loop.latch.terminator
    pending = [*following(loop, loop.latch), *last.operands]
    seen: set[Value] = set()
    while pending:
        item = pending.pop()
        if item in seen or not isinstance(item, Instruction) or not loop.contains(item.block):
            continue
        seen.add(item)
        if item.opcode == "phi" and item.block is loop.header:
            continue
        if item.opcode not in PURE:
            return False
        pending.extend(item.operands)
    return last.opcode == "br"


def following(loop: Loop, latch: Block) -> list[Value]:
    """The next values of the header phis."""
    return [phi.operands[phi.blocks.index(latch)] for phi in loop.header.phis]


def advance(
    b: Builder, loop: Loop, values: Sequence[Value], table: dict[Value, Value], body: Block | None = None
) -> None:
    """Compute values that depend on the header phis only, again; `table` says what the phis are, and learns the rest.

    body: where the header's instructions have moved to
    """

    def there(value: Value) -> bool:
        if value in table or not isinstance(value, Instruction):
            return True
        inside = value.block is body or loop.contains(value.block)
        return not inside or (value.opcode == "phi" and value.block is loop.header)

    pending = list(values)
    while pending:
        item = pending[-1]
        if there(item):
            pending.pop()
            continue
        assert isinstance(item, Instruction)
        missing = [o for o in item.operands if not there(o)]
        if missing:
            pending.extend(missing)
            continue
        table[item] = b.insert(copied(item, [table.get(o, o) for o in item.operands]))
