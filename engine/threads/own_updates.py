"""Updates that the source makes one at a time although one thread makes them all: of variables of the function itself.

`#pragma omp critical` and `#pragma omp atomic` keep threads apart. The threads of a kernel are those that share a loop
in chunks, and dependence decides whether they may (`chunks.py`). Where such an update is of a variable whose address
nobody else has, it is an operation on a value once the variable is one: a sum, an extreme, which chunks put together
(`normalise/reductions.py`). Calls around a critical section, which do nothing, are dropped.
"""

from __future__ import annotations

from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.opcodes import FLOAT_BINARY, INT_BINARY
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.threads.shadows import PROMOTE

__all__ = ["with_own_updates"]

_OPERATIONS = INT_BINARY | FLOAT_BINARY


def with_own_updates(text: str, root: str) -> str:
    """The module with the updates of a function's own variables as plain ones, on values; as it is where there are
    none."""
    if "atomicrmw " not in text:
        return text
    code = Code(text, roots=[root])
    fn = code.model.functions[root]
    if not _take_apart(fn):
        return text
    run_passes(PROMOTE, code, Settings((root,)))
    return code.text


def _take_apart(fn: Function) -> bool:
    """Atomic updates of variables that only the function itself accesses become a load, an operation and a store."""
    uses, done = uses_of(fn.blocks), False
    for block in fn.blocks:
        rows = [i for i in block.instructions if i.opcode == "atomicrmw" and i.pred in _OPERATIONS and not i.volatile]
        for instr in rows:
            if _alone(instr.operands[0], uses):
                _plain(fn, instr)
                done = True
    return done


def _alone(variable: Value, uses: Uses) -> bool:
    """Whether a variable is used by loads, stores and updates of the whole of it alone."""
    if not isinstance(variable, Instruction) or variable.opcode != "alloca":
        return False
    for user in uses.get(variable, ()):
        place = user.traits.address if user.opcode != "cmpxchg" else -1
        marks = user.is_call and (user.callee_name or "").startswith("llvm.lifetime.")
        if not marks and [n for n, o in enumerate(user.operands) if o is variable] != [place]:
            return False
    return True


def _plain(fn: Function, instr: Instruction) -> None:
    block = instr.block
    assert block is not None
    at = Builder(block, block.instructions.index(instr))
    at.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
    pointer, value = instr.operands
    old = at.load(instr.type, pointer, instr.align)
    at.store(at.binary(instr.pred, old, value, ()), pointer, instr.align)
    block.instructions.remove(instr)
    replace_uses(fn, {instr: old})
