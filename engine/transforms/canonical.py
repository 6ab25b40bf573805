"""Brings the functions reachable from a root into the shape that differentiation expects.

One return per function, reducible loops with a preheader, a single latch and exits of their own, no value of a loop
used outside of it except through a phi at the exit, floats moved as floats (`packed.py`), library calls with several
effects taken apart, and addresses that are elements of vectors computed one by one.
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Module
from irgrad.engine.transforms.alike import merge_alike
from irgrad.engine.transforms.demote import close_loops
from irgrad.engine.transforms.desugar import desugar
from irgrad.engine.transforms.elements import separate_elements
from irgrad.engine.transforms.library import expand_library
from irgrad.engine.transforms.mixed import split_mixed_vectors
from irgrad.engine.transforms.packed import unpack
from irgrad.engine.transforms.unions import move_unions


def canonicalise_module(module: Module, root: Function) -> None:
    """Canonicalise `root` and everything it may call."""
    expand_library(module)
    for fn in list(module.functions.values()):
        if fn.blocks:
            canonicalise_function(module, fn)
    del root


def canonicalise_function(module: Module, fn: Function) -> None:
    """Canonicalise one function in place."""
    desugar(module, fn)
    split_mixed_vectors(fn)
    unpack(module, fn)
    move_unions(fn)
    separate_elements(fn)
    merge_alike(fn)
    unify_returns(fn)
    from irgrad.engine.transforms.reducible import canonicalise, make_reducible

    make_reducible(fn)
    canonicalise(fn)
    close_loops(fn)


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
