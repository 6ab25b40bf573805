"""Values that a loop does not change, computed before it."""

from __future__ import annotations

from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.rewrite import copied

__all__ = ["always_runs", "before", "can_leave", "numbers_leave"]

_MOST = 32
_MOVED = SPECULATABLE - {"phi", "freeze"}


def can_leave(value: Value, loop: Loop) -> bool:
    """Whether `before` has the value: it comes from outside of the loop, or is computed from such values by operations
    that may run anywhere."""
    work, seen = [value], set[Value]()
    while work:
        item = work.pop()
        if not isinstance(item, Instruction) or not loop.contains(item.block) or item in seen:
            continue
        if item.opcode not in SPECULATABLE or item.opcode in ("phi", "freeze") or len(seen) >= _MOST:
            return False
        seen.add(item)
        work += item.operands
    return True


def before(value: Value, loop: Loop, builder: Builder, made: dict[Value, Value], *, runs: bool) -> Value:
    """The value, at the builder's place before the loop; `can_leave` holds. `made` has what was computed already.

    runs: whether the value is computed each time that the loop is entered: else what is promised of it in the loop (no
    overflow, inside of an object) may not hold outside, and is left out
    """
    if not isinstance(value, Instruction) or not loop.contains(value.block):
        return value
    if value not in made:
        new = copied(value, [before(v, loop, builder, made, runs=runs) for v in value.operands])
        if not runs:
            new.flags = ()
        made[value] = builder.insert(new)
    return made[value]


def always_runs(block: Block, loop: Loop, loops: Loops) -> bool:
    """Whether the block runs in each iteration, the first one included."""
    return all(loops.dom.dominates(block, end) for end in (*loop.latches, *loop.exiting))


def numbers_leave(loop: Loop, loops: Loops) -> None:
    """Integers and addresses that are invariant now are computed before the loop, so that counts may be; what is made
    of floats that stay in the loop stays as well."""
    assert loop.preheader is not None
    place = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    for block in loop.blocks:
        always = always_runs(block, loop, loops)
        for instr in [i for i in block.instructions if i.opcode in _MOVED]:
            whole = isinstance(instr.type, ty.IntType | ty.PtrType)
            stays = any(isinstance(o, Instruction) and loop.contains(o.block) for o in instr.operands)
            if whole and not stays and can_leave(instr, loop):
                block.instructions.remove(instr)
                instr.flags = instr.flags if always else ()
                place.insert(instr)
