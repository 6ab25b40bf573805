"""The alias scopes of iterations, and how they are left out.

Derivatives say which of their accesses never meet (`differentiate/shared/alias_scopes.py`), iterations do as well. What
is differentiated again, or goes to a device, says nothing of the kind in iterations: LLVM would keep sums in registers
along loops, where what adds to memory that others add to has to stay a load, an addition and a store in a row (see
`threads/shadows.py`, `grids/accumulations.py`).
"""

from __future__ import annotations

from irgrad.engine.ir.model import Function, Instruction, Module
from irgrad.engine.normalise.iterations import ITERATION

__all__ = ["DECLARE", "drop_scopes", "without_scopes"]

DECLARE = "llvm.experimental.noalias.scope.decl"
"""The intrinsic that declares a scope where a function begins."""
_SAID = ("alias.scope", "noalias")


def without_scopes(text: str) -> str:
    """The module without the scopes of its iterations."""
    if ITERATION not in text:
        return text
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.outline import outline
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=sorted(name for name in outline(text).defined if ITERATION in name))
    return to_text(module) if drop_scopes(module) else text


def drop_scopes(module: Module) -> bool:
    """Leave out the scopes of the iterations of a module that were read; whether there were any."""
    there = False
    for name, fn in module.functions.items():
        if ITERATION in name and fn.blocks:
            there |= _drop(fn)
    return there


def _drop(fn: Function) -> bool:
    there = False
    for block in fn.blocks:
        kept = [instr for instr in block.instructions if not _declares(instr)]
        there |= len(kept) < len(block.instructions)
        block.instructions = kept
        for instr in kept:
            for word in _SAID:
                there |= instr.metadata.pop(word, None) is not None
    return there


def _declares(instr: Instruction) -> bool:
    return instr.is_call and instr.callee_name == DECLARE
