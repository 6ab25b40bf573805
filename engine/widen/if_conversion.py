"""Branches that vary between samples become selects, where both sides are short and without side effects.

    p: br %c, a, m      a: %x = ...; br m      m: %y = phi [%x, a], [%z, p]

becomes `p: %x = ...; %y = select %c, %x, %z; br m`, and the same with two sides. Where that is not enough, branches
that do not vary are flattened as well: one of them may stand in a side of one that does.
"""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.widen.uniformity import Uniformity, math_intrinsic
from irgrad.rules.effects import facts as effects_of

__all__ = ["flatten", "predecessors", "pure"]

_COST = 200
"""The most that both sides of a branch may cost together: an operation is 1, a call 20."""
_LOW = 40
"""The same for branches that do not vary."""


def flatten(fn: Function, analyse: Callable[[], Uniformity]) -> None:
    """Flatten what can be flattened, innermost branches first. Changes `fn`."""
    while True:
        _join(fn)
        facts = analyse()
        branches = [b for b in fn.blocks if b.terminator.opcode == "br" and b.terminator.operands]
        varying = [b for b in branches if b.terminator.operands[0] in facts.varying]
        if not varying:
            return
        others = [b for b in branches if b not in varying]
        if not any(_flatten_at(fn, b, _COST) for b in varying) and not any(_flatten_at(fn, b, _LOW) for b in others):
            return


def _join(fn: Function) -> None:
    """Blocks that follow each other without a choice become one."""
    preds = predecessors(fn)
    replaced: dict[Value, Value] = {}
    gone: set[Block] = set()
    for block in fn.blocks:
        while block not in gone and block.terminator.opcode == "br" and not block.terminator.operands:
            after = block.successors[0]
            if preds[after] != [block] or after is block:
                break
            block.instructions.pop()
            for instr in after.instructions:
                if instr.opcode == "phi":
                    replaced[instr] = instr.operands[0]
                    continue
                instr.block = block
                block.instructions.append(instr)
            for to in block.successors:
                preds[to] = [block if b is after else b for b in preds[to]]
                for phi in to.phis:
                    phi.blocks = [block if b is after else b for b in phi.blocks]
            gone.add(after)
    fn.blocks[:] = [b for b in fn.blocks if b not in gone]
    for instr in fn.instructions() if replaced else ():
        instr.operands = [_final(v, replaced) for v in instr.operands]


def _final(value: Value, replaced: dict[Value, Value]) -> Value:
    while value in replaced:
        value = replaced[value]
    return value


def _flatten_at(fn: Function, block: Block, limit: int) -> bool:
    end = block.terminator
    yes, no = end.blocks
    if yes is no:
        return False
    preds = predecessors(fn)
    sides = [side if _is_side(side, preds) else None for side in (yes, no)]
    ends = [side.successors[0] if side is not None else to for side, to in zip(sides, (yes, no), strict=True)]
    if ends[0] is not ends[1]:  # a triangle whose other side also looks like one
        for keep in (0, 1):
            if sides[keep] is not None and ends[keep] is (yes, no)[1 - keep]:
                sides[1 - keep], ends[1 - keep] = None, ends[keep]
                break
        else:
            return False
    if sides == [None, None] or sum(_cost(side) for side in sides if side is not None) > limit:
        return False
    _merge(fn, block, sides, ends[0])
    return True


def predecessors(fn: Function) -> dict[Block, list[Block]]:
    """The blocks from which each block is reached."""
    out: dict[Block, list[Block]] = {block: [] for block in fn.blocks}
    for block in fn.blocks:
        for to in block.successors:
            out[to].append(block)
    return out


def _is_side(block: Block, preds: dict[Block, list[Block]]) -> bool:
    return len(preds[block]) == 1 and block.terminator.opcode == "br" and len(block.successors) == 1 and not block.phis


def _cost(block: Block) -> int:
    total = 0
    for instr in block.instructions[:-1]:
        if instr.opcode in SPECULATABLE:
            total += 1
        elif instr.opcode == "call" and pure(instr):
            total += 20
        else:
            return _COST + 1
    return total


def pure(instr: Instruction) -> bool:
    """Whether a call neither reads nor writes memory and may be made for samples that do not need it."""
    name = instr.callee_name or ""
    if math_intrinsic(name):
        return True
    known = effects_of(name) if name and not name.startswith("llvm.") else None
    return known is not None and known.kind == "pure" and not any(v.type.is_ptr for v in instr.args)


def _merge(fn: Function, block: Block, sides: list[Block | None], out: Block) -> None:
    branch = block.instructions.pop()
    condition = branch.operands[0]
    for side in sides:
        if side is not None:
            for instr in side.instructions[:-1]:
                instr.block = block
                block.instructions.append(instr)
    came = [side if side is not None else block for side in sides]
    for phi in out.phis:
        values: list[Value] = [phi.operands[phi.blocks.index(source)] for source in came]
        if values[0] is values[1]:
            chosen = values[0]
        else:
            select = Instruction("select", phi.type, [condition, *values])
            select.block = block
            block.instructions.append(select)
            chosen = select
        rows = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b not in came]
        phi.operands = [*(v for v, _ in rows), chosen]
        phi.blocks = [*(b for _, b in rows), block]
    jump = Instruction("br", ty.VOID, blocks=[out])
    jump.block = block
    block.instructions.append(jump)
    gone = {side for side in sides if side is not None}
    fn.blocks[:] = [b for b in fn.blocks if b not in gone]
