"""Which accesses of a worksharing loop may meet those of other iterations, and the two parts that follow from them.

They are those in sections that one thread at a time runs, atomic operations that no copies are made for, and those of
memory that a thread has for itself from one iteration to the next: reductions of arrays and by operators of the user.
Values that iterations hand on in another way than as sums go through such memory.
"""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.promises import has_atomic
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.iterations import (
    carried_memory,
    carried_values,
    memory_of_iterations,
    why_not_outlined,
)
from irgrad.engine.parallel.sections import in_sections, is_section_fence
from irgrad.engine.threads.array_updates import atomic_rows
from irgrad.engine.threads.iteration_parts import Parts, parts_of

__all__ = ["meeting", "ordered_parts"]


def meeting(dependence: Dependence, loop: Loop, *, atomic: bool) -> set[Instruction] | None:
    """What may touch memory in the sections of a loop; None where it is not known. atomic: and atomic operations.
    The fences of sections with nothing in them are left out."""
    inner = (i for block in loop.blocks for i in block.instructions if i.is_call)
    found = in_sections([loop.header, *(b for b in loop.blocks if b is not loop.header)])
    if found is None or any(map(has_atomic, inner)):
        return None
    found &= {access.instr for access in dependence.accesses(loop)}
    if not found:
        for block in loop.blocks:
            block.instructions = [i for i in block.instructions if not is_section_fence(i)]
    return found | ({*atomic_rows(loop)} if atomic else set())


def ordered_parts(
    module: Module, fn: Function, loop: Loop, together: set[Instruction], common: Collection[Value]
) -> Parts | None:  # fmt: skip
    """The two parts of a loop, or why there are none; None for a loop that needs none. together: what `meeting` found;
    common: memory before the loop that does not go from iteration to iteration. Where there are parts, the loop can be
    outlined with memory that does."""
    if not why_not_outlined(module, fn, loop, common) and not together:
        return None
    variables: list[Instruction] = []
    while values := carried_values(module, fn, loop):
        variables += [_through_memory(fn, loop, value) for value in values]
    dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    refusal = why_not_outlined(module, fn, loop, memory=True)
    if refusal:
        return Parts(refusal=refusal)
    mask = 0
    for memory in (*variables, *carried_memory(module, fn, loop, common)):
        mask |= dependence.pointers.of(memory)
    more = {a.instr for a in dependence.accesses(loop) if mask and (not a.objects or a.objects & mask)}
    return parts_of(module, fn, loop, dependence, together | more, memory_of_iterations(module, fn, loop))


def _through_memory(fn: Function, loop: Loop, value: Instruction) -> Instruction:
    """Have a value that iterations hand on, or that is used behind the loop, in a variable of the function."""
    before, latch = loop.preheader, loop.latch
    assert before is not None and latch is not None and value.block is not None
    variable = Builder(fn.entry, 0).alloca(value.type)
    if value.opcode == "phi" and value.block is loop.header:
        rows = list(zip(value.operands, value.blocks, strict=True))
        start, after = (next(v for v, b in rows if loop.contains(b) is inside) for inside in (False, True))
        Builder(before, len(before.instructions) - 1).store(start, variable)
        if after is not value:
            Builder(latch, len(latch.instructions) - 1).store(after, variable)
        at = Builder(loop.header, len(loop.header.phis) - 1)
        loop.header.instructions.remove(value)
        new: Value = at.load(value.type, variable)
        for user in fn.instructions():
            user.operands = [new if o is value else o for o in user.operands]
        return variable
    leave = loop.exits[0]
    place = len(value.block.phis) if value.opcode == "phi" else value.block.instructions.index(value) + 1
    Builder(value.block, place).store(value, variable)
    read = Builder(leave, len(leave.phis)).load(value.type, variable)
    users = [u for u in uses_of(fn.blocks).get(value, ()) if not loop.contains(u.block)]
    for phi in [u for u in users if u in leave.phis]:
        for user in fn.instructions():
            user.operands = [read if o is phi else o for o in user.operands]
        leave.instructions.remove(phi)
    for user in users:
        user.operands = [read if o is value else o for o in user.operands]
    return variable
