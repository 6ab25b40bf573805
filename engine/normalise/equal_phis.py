"""A phi of the same computation in every predecessor becomes that computation.

LLVM duplicates the increment of a loop into the arms of a `continue` and merges the copies by a phi. As one addition
it is an induction variable again, which follows from the iteration number; as a phi it would go to the tape, and
every address made from it. The same goes for two counters of which one is always as far ahead of the other: of
`for (i = 0; i + 1 < n; i++)` LLVM makes i + 1 a phi of its own, and i what that was before; of u[i + 2] in a loop, a
phi whose next value is i + 3 where that of i is i + 1. And to addresses: where a
phi is what a counter's values make of one base (`for (auto &k : n.kid)` in C++), it is the address of the counter, and
as bounded.
"""

from __future__ import annotations

from typing import Any

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import CASTS, SPECULATABLE, having
from irgrad.engine.ir.rewrite import replace_uses

_PURE = SPECULATABLE & (having("subscript") | CASTS | {"icmp"})


def merge_alike(fn: Function) -> int:
    """A phi of the same computation in every predecessor becomes that computation. Returns how many there were."""
    if sum(block.terminator.opcode != "ret" for block in fn.blocks) < 2:
        return 0
    loops = get(Loops, fn)
    total = 0
    while True:
        replaced: dict[Value, Value] = {}
        for block in loops.cfg.rpo:
            for phi in block.phis:
                one = _common(phi, block, loops)
                if one is not None:
                    replaced[phi] = _instead(phi, one, list(one.operands), block)
                    continue
                ahead = _ahead(phi, block)
                if ahead is not None:
                    behind, step, flags = ahead
                    replaced[phi] = _sum(phi, behind, step, flags, block)
                    break  # the other one is no longer behind a phi
                address = _address(phi, block, loops)
                if address is not None:
                    one, counter = address
                    replaced[phi] = _instead(phi, one, [one.operands[0], counter], block)
                    break
        if not replaced:
            return total
        total += len(replaced)
        replace_uses(fn, replaced)


def _common(phi: Instruction, block: Block, loops: Loops) -> Instruction | None:
    """One of the incoming values, when all of them compute the same from values that `block` may use."""
    first = phi.operands[0]
    if not isinstance(first, Instruction) or first.opcode not in _PURE or any(o is phi for o in first.operands):
        return None
    if len(set(phi.operands)) < 2 or not all(_alike(first, other) for other in phi.operands[1:]):
        return None
    return first if all(_may_be_used(operand, block, loops) for operand in first.operands) else None


def _may_be_used(value: Value, block: Block, loops: Loops) -> bool:
    """Not a value that has left its loop: only a phi at the exit may read that."""
    if not isinstance(value, Instruction):
        return True
    loop = loops.of(value.block) if value.block is not None else None
    return value.block is not None and (loop is None or loop.contains(block))


def _ahead(phi: Instruction, block: Block) -> tuple[Instruction, int, tuple[str, ...]] | None:
    """A phi of the block that is always as far behind, how far, and the flags of the addition that makes up for it."""
    if not phi.type.is_int:
        return None
    bits = ty.size_of(phi.type) * 8
    for behind in block.phis:
        if behind is phi or behind.type is not phi.type:
            continue
        before = dict(zip(behind.blocks, behind.operands, strict=True))
        rows = [(value, before[b]) for value, b in zip(phi.operands, phi.blocks, strict=True)]
        steps = {_further(value, other, bits) for value, other in rows}
        step = steps.pop()
        if steps or step is None or all(isinstance(value, ConstInt) for value, _ in rows):
            continue
        adds = [v for row in rows for v in row if isinstance(v, Instruction) and _summand(v)[1]]
        return behind, step, tuple(f for f in ("nuw", "nsw") if all(f in add.flags for add in adds))
    return None


def _further(value: Value, other: Value, bits: int) -> int | None:
    """How much more a value is than another, as small numbers or by constants added to the same; None: not, or not
    known."""
    if isinstance(value, ConstInt) and isinstance(other, ConstInt):
        return value.value - other.value if 0 <= other.value < value.value < 1 << bits - 1 else None
    (base, more), (same, less) = _summand(value), _summand(other)
    return more - less if base is same and less >= 0 and less < more < 1 << bits - 1 else None


def _summand(value: Value) -> tuple[Value, int]:
    """A value and a constant of which this is the sum."""
    if isinstance(value, Instruction) and value.opcode == "add" and isinstance(value.operands[1], ConstInt):
        return value.operands[0], value.operands[1].value
    return value, 0


def _address(phi: Instruction, block: Block, loops: Loops) -> tuple[Instruction, Instruction] | None:
    """An address of one base, and the phi of the block that is its index, whichever way the block is entered."""
    one = next((o for o in phi.operands if isinstance(o, Instruction) and o.opcode == "getelementptr"), None)
    if one is None or len(one.operands) != 2 or one.type is not ty.PTR:
        return None
    base, index = one.operands
    if base is phi or not _may_be_used(base, block, loops):
        return None
    for counter in block.phis:
        if counter is phi or counter.type is not index.type:
            continue
        before = dict(zip(counter.blocks, counter.operands, strict=True))
        if all(_at(value, one, before[b]) for value, b in zip(phi.operands, phi.blocks, strict=True)):
            return one, counter
    return None


def _at(value: Value, one: Instruction, index: Value) -> bool:
    """Whether a value is the address `one` with this index."""
    if value is one.operands[0]:
        return isinstance(index, ConstInt) and index.value == 0
    if not isinstance(value, Instruction) or (value.opcode, value.elem) != (one.opcode, one.elem):
        return False
    return len(value.operands) == 2 and value.operands[0] is one.operands[0] and _equal(value.operands[1], index)


def _alike(a: Instruction, b: Value) -> bool:
    return (
        isinstance(b, Instruction)
        and (a.opcode, a.type, a.pred, a.elem) == (b.opcode, b.type, b.pred, b.elem)
        and len(a.operands) == len(b.operands)
        and all(map(_equal, a.operands, b.operands))
    )


def _equal(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, ConstInt) and isinstance(b, ConstInt) and (a.type, a.value) == (b.type, b.value))


def _instead(phi: Instruction, one: Instruction, operands: list[Value], block: Block) -> Instruction:
    """The computation behind the phis of the block, with the flags that every copy has."""
    copies = [o for o in phi.operands if isinstance(o, Instruction)]
    flags = tuple(flag for flag in one.flags if all(flag in copy.flags for copy in copies))
    return _put(phi, block, Instruction(
        one.opcode, one.type, operands, name=phi.name, flags=flags, pred=one.pred, elem=one.elem,
        metadata=_place(one),
    ))  # fmt: skip


def _sum(phi: Instruction, behind: Value, step: int, flags: tuple[str, ...], block: Block) -> Instruction:
    """Another phi of the block and a constant."""
    made = next(o for o in phi.operands if isinstance(o, Instruction))
    operands = [behind, ConstInt(phi.type, step)]
    return _put(phi, block, Instruction("add", phi.type, operands, name=phi.name, flags=flags, metadata=_place(made)))


def _place(of: Instruction) -> dict[str, Any]:
    dbg = of.metadata.get("dbg")
    return {"dbg": dbg} if dbg else {}


def _put(phi: Instruction, block: Block, new: Instruction) -> Instruction:
    new.block = block
    block.instructions.remove(phi)
    at = sum(1 for instr in block.instructions if instr.opcode in ("phi", "landingpad"))
    block.instructions.insert(at, new)
    return new
