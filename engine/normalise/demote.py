"""Values of a loop that are used outside of it without a phi at the exit go through a stack variable instead.

LLVM's LCSSA form already has the phis; what slips through (after passes that fold such phis) is rare, so the simple
way will do.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction


def close_loops(fn: Function) -> int:
    """Demote the values that leave their loop other than through an exit phi. Returns how many."""
    cfg = get(Cfg, fn)
    loops = get(Loops, fn)
    if not loops.top:
        return 0
    uses: dict[Instruction, list[tuple[Instruction, int]]] = {}
    for block in cfg.rpo:
        for instr in block.instructions:
            for i, operand in enumerate(instr.operands):
                if isinstance(operand, Instruction) and operand.block is not None:
                    loop = loops.of(operand.block)
                    where = instr.blocks[i] if instr.opcode == "phi" else block
                    if loop is not None and not loop.contains(where):
                        uses.setdefault(operand, []).append((instr, i))
    for value, places in uses.items():
        demote(fn, value, places)
    return len(uses)


def demote(fn: Function, value: Instruction, places: list[tuple[Instruction, int]]) -> None:
    """Store `value` where it is computed and load it at the given uses."""
    cell = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=value.type, align=ty.align_of(value.type))
    _insert(fn.entry, 0, cell)
    assert value.block is not None
    home = value.block
    at = home.instructions.index(value) + 1
    while home.instructions[at].opcode == "phi":
        at += 1
    _insert(home, at, Instruction("store", ty.VOID, [value, cell], align=cell.align))
    for user, i in places:
        load = Instruction("load", value.type, [cell], align=cell.align)
        if user.opcode == "phi":
            source = user.blocks[i]
            _insert(source, len(source.instructions) - 1, load)
        else:
            assert user.block is not None
            _insert(user.block, user.block.instructions.index(user), load)
        user.operands[i] = load


def _insert(block: Block, at: int, instr: Instruction) -> None:
    instr.block = block
    block.instructions.insert(at, instr)
