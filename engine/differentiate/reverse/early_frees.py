"""Memory of a function that its reverse sweep reads nothing of is freed where the program frees it.

    std::vector<double> terms(n);        // only added up: their adjoints are all that the reverse sweep knows of them
    for (...) terms[i] = f(x[i]);

A free waits until the reverse sweep is through, since that may load again what was there, and hand the address to
functions. Where it does neither, LLVM sees memory that is freed and, in a gradient without the value, that nothing
reads: what computed its contents goes too.
"""

from __future__ import annotations

from irgrad.engine.analyses.activity.activity import objects_of
from irgrad.engine.differentiate.shadow import persistent_memory
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.opcodes import LEADS_ON

__all__ = ["reads_nothing"]

_HARMLESS = ("llvm.memset.", "llvm.lifetime.", "llvm.assume", "llvm.dbg.")


def reads_nothing(owner: ReverseState, memory: Value) -> bool:
    """Whether the reverse sweep reads nothing of memory that the function allocates and frees."""
    pointers = owner.unit.pointers
    mask = pointers.of(memory)
    objects = objects_of(pointers, mask)
    own = all(o.kind == "heap" and isinstance(o.site, Instruction) and not pointers.escaped(o) for o in objects)
    sites = {o.site for o in objects}
    if not objects or not own or persistent_memory.outlives(owner.unit, memory):
        return False
    if not all(isinstance(site, Instruction) and site.block in owner.fn.blocks for site in sites):
        return False
    demands = owner.plan.demands
    wanted = (demands.computed, demands.values, demands.shared, demands.saved)
    for instr in owner.fn.instructions():
        if not any(pointers.expand(pointers.of(operand)) & mask for operand in instr.operands):
            continue
        if instr.opcode == "load":
            if instr.type.is_ptr or any(instr in some for some in wanted):
                return False
        elif instr.opcode == "store":
            if pointers.expand(pointers.of(instr.operands[0])) & mask:
                return False
        elif instr.is_call:
            if not _harmless(owner, instr, mask):
                return False
        elif instr.opcode not in LEADS_ON:
            return False
    return True


def _harmless(owner: ReverseState, call: Instruction, mask: int) -> bool:
    if (call.callee_name or "").startswith(_HARMLESS):
        return True
    effect = owner.unit.pointers.effect(call)
    if effect is None or effect.frees is None:
        return False
    return not owner.unit.pointers.of(call.args[effect.frees]) & ~mask
