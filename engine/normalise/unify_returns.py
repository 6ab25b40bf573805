"""One return for each function: all returns go through one block."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction

__all__ = ["unify_returns"]


def unify_returns(fn: Function) -> None:
    """Let all returns go through one block."""
    returns = [b for b in fn.blocks if b.terminator.opcode == "ret"]
    if len(returns) < 2:
        return
    out = Block("return")
    out.function = fn
    taken = {b.name for b in fn.blocks}
    while out.name in taken:
        out.name = f"{out.name}_"
    last = Instruction("ret", ty.VOID, [])
    if fn.ftype.ret is not ty.VOID:
        phi = Instruction("phi", fn.ftype.ret, [b.terminator.operands[0] for b in returns], blocks=returns)
        phi.block = out
        out.instructions.append(phi)
        last.operands = [phi]
    last.block = out
    out.instructions.append(last)
    for block in returns:
        jump = Instruction("br", ty.VOID, blocks=[out])
        jump.block = block
        block.instructions[-1] = jump
    fn.blocks.append(out)
