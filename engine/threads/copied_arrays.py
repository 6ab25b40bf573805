"""Arrays of which each chunk of a loop is going to have a copy, as far as that is known before it.

What an iteration reads and others may read too, the reverse sweep of each adds to: chunks do so in a copy of their own,
which costs zeros before and a sum behind. Whether a gradient by that array will be asked for is not known here; an
array of which each iteration reads its own part has no copies, nor has one of unknown size (see `teams.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.iterations import OWN_PLACES
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.threads.ownership import base_of, root_of
from irgrad.engine.threads.shared_updates import bytes_of_array
from irgrad.engine.threads.work import Size

__all__ = ["copied_bytes", "from_outside"]


def copied_bytes(
    fn: Function, loop: Loop, said: Mapping[Value, str], own: Collection[Value], bytes_of: Sequence[Bytes | None]
) -> dict[Value, Size]:
    """The arrays of floats that all iterations of a loop may read, and their bytes. said, own: see `plans.Plan`;
    bytes_of: of each argument of the function"""
    found: dict[Value, Size] = {}
    uses = uses_of(fn.blocks)
    for load in (i for block in loop.blocks for i in block.instructions if i.opcode == "load"):
        pointer = from_outside(loop, load.operands[0])
        memory = root_of(pointer)
        if not load.type.scalar.is_float or OWN_PLACES in said.get(pointer, "") or memory in own or memory in found:
            continue
        if isinstance(memory, Instruction) and memory.opcode == "alloca" and _begins(loop, uses.get(memory, ())):
            continue
        size = bytes_of_array(fn, fn, memory, bytes_of)
        if size is not None:
            found[memory] = size
    return found


def from_outside(loop: Loop, pointer: Value) -> Value:
    """The address from outside of a loop that one is made of."""
    while isinstance(pointer, Instruction) and loop.contains(pointer.block):
        base = base_of(pointer)
        if base is None:
            break
        pointer = base
    return pointer


def _begins(loop: Loop, users: Collection[Instruction]) -> bool:
    """Whether the life of a variable begins in each iteration, or it is used there alone."""
    starts = (u.is_call and (u.callee_name or "").startswith("llvm.lifetime.start") for u in users
              if loop.contains(u.block))  # fmt: skip
    return any(starts) or all(loop.contains(u.block) for u in users)
