"""Loops that repeat a compare-and-exchange until nobody came between: load, operation, store.

    old = load atomic i64 p                              x = load double p
    again: bits = phi [old], [seen]                      y = x * f
        y = bitcast(bits) * f                            store y, p
        seen, ok = cmpxchg p, bits, bitcast(y)
        br ok, behind, again

So compilers write atomic operations that the machine does not have: products, quotients, captured values. One thread
runs the call of a derivative, and loops with such operations are not shared, so that the exchange succeeds the first
time. As bits that go through integers the numbers would be undecidable for activity.
"""

from __future__ import annotations

from dataclasses import dataclass

from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.types import FloatType, Type
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["settle_exchanges"]

_SAID = ("dbg", "tbaa", "irgrad.type", "alias.scope", "noalias")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The instructions of such a loop, which is one block."""

    load: Instruction
    old: Instruction
    swap: Instruction
    behind: Block


def settle_exchanges(fn: Function) -> bool:
    """Put load, operation and store in place of a function's loops of compare-and-exchange. Returns whether there were
    any."""
    if not any(i.opcode == "cmpxchg" for block in fn.blocks for i in block.instructions):
        return False
    uses = uses_of(fn.blocks)
    found = [made for block in fn.blocks if (made := _exchange(fn, block, uses)) is not None]
    for made in found:
        _settle(fn, made, uses)
    return bool(found)


def _exchange(fn: Function, block: Block, uses: Uses) -> _Exchange | None:
    end = block.terminator
    swaps = [i for i in block.instructions if i.opcode == "cmpxchg"]
    if len(swaps) != 1 or end.opcode != "br" or len(end.blocks) != 2 or end.blocks[1] is not block:
        return None
    swap, okay = swaps[0], end.operands[0]
    place, old = swap.operands[:2]
    phis = [i for i in block.instructions if i.opcode == "phi"]
    if not isinstance(old, Instruction) or phis != [old] or len(old.operands) != 2:
        return None
    if swap.volatile or not _part(okay, swap, 1):
        return None
    if any(i.opcode not in PURE and i not in (swap, end, old) for i in block.instructions):
        return None
    around = [n for n, b in enumerate(old.blocks) if b is block]
    if len(around) != 1 or not _part(old.operands[around[0]], swap, 0):
        return None
    load, before = old.operands[1 - around[0]], old.blocks[1 - around[0]]
    if not isinstance(load, Instruction) or load.opcode != "load" or load.volatile or load.operands[0] is not place:
        return None
    if before is None or load.block is not before or set(uses.get(load, ())) != {old}:
        return None
    after = before.instructions[before.instructions.index(load) + 1 :]
    if any(i.opcode not in PURE and i is not before.terminator for i in after):
        return None
    rest = [u for u in uses.get(swap, ()) if u.opcode != "extractvalue"]
    behind = end.blocks[0]
    return None if rest or behind is None else _Exchange(load, old, swap, behind)


def _part(value: Value, swap: Instruction, at: int) -> bool:
    return (isinstance(value, Instruction) and value.opcode == "extractvalue" and value.operands[0] is swap
            and list(value.indices) == [at])  # fmt: skip


def _settle(fn: Function, made: _Exchange, uses: Uses) -> None:
    load, old, swap = made.load, made.old, made.swap
    block, before = swap.block, load.block
    assert block is not None and before is not None
    kind = _number(made, uses)
    said = {key: node for key, node in load.metadata.items() if key in _SAID}
    value = Builder(before, before.instructions.index(load)).load(kind or load.type, load.operands[0], load.align, said)
    bits = value if kind is None else Builder(before, before.instructions.index(load)).cast("bitcast", value, load.type)
    replaced: dict[Value, Value] = {old: bits}
    for user in uses.get(old, ()) if kind is not None else ():
        if user is not swap:
            replaced[user] = value
            assert user.block is not None
            user.block.instructions.remove(user)
    new = swap.operands[2]
    stored = new.operands[0] if kind is not None and isinstance(new, Instruction) else new
    stored = replaced.get(stored, stored)
    Builder(block, block.instructions.index(swap)).store(stored, swap.operands[0], swap.align, said)
    for user in uses.get(swap, ()):
        replaced[user] = ConstInt(user.type, 1) if _part(user, swap, 1) else bits
        assert user.block is not None
        user.block.instructions.remove(user)
    before.instructions.remove(load)
    block.instructions = [i for i in block.instructions if i not in (old, swap, block.terminator)]
    Builder(block).br(made.behind)
    replace_uses(fn, replaced)


def _number(made: _Exchange, uses: Uses) -> Type | None:
    """The type of the float whose bits are exchanged; None where they are no float's."""
    new = made.swap.operands[2]
    if not isinstance(new, Instruction) or new.opcode != "bitcast" or not isinstance(new.operands[0].type, FloatType):
        return None
    kind = new.operands[0].type
    seen = [u for u in uses.get(made.old, ()) if u is not made.swap]
    return kind if all(u.opcode == "bitcast" and u.type is kind for u in seen) else None
