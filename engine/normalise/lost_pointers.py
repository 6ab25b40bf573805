"""Accesses through pointers of which no memory is known: they run nowhere, or an analysis has lost what they lead to.

A pointer that only ever is null leads nowhere, and nothing is read through it. That is what an empty points-to set says.
If it is wrong, numbers come out of that memory with a derivative of zero, and nobody is told. So a derivative looks when
it runs: a call that gets to such an access ends with an error that names the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import leaves
from irgrad.engine.analyses.memory.objects import bits_of, has_pointer, resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.rewrite import declare, text_constant

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["LOST", "watch_lost"]

LOST = "irgrad.tape.lost"
"""Ends a call: (where)."""
_LOOKS = "nounwind willreturn memory(inaccessiblemem: readwrite)"


def watch_lost(facts: Facts) -> bool:
    """Put a look in front of each access through a pointer that leads nowhere. True where there are any."""
    found = [
        instr for fn in facts.pointers.functions for instr in fn.instructions()
        if any(_leads_nowhere(facts, address) for address in _addresses(facts, instr)) and not _watched(instr)
    ]  # fmt: skip
    for instr in found:
        assert instr.block is not None
        b = Builder(instr.block, instr.block.instructions.index(instr))
        b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
        look = declare(facts.module, LOST, ty.VOID, (ty.PTR,), _LOOKS)
        b.call(look, [text_constant(facts.module, locate(facts.module, instr) or "its own code")])
    return bool(found)


def _addresses(facts: Facts, instr: Instruction) -> list[Value]:
    """The pointers through which an instruction moves floats, stores pointers, or calls a function of floats. Memory of
    the C library, which functions like `__ctype_b_loc` lead to, has no object; none of these is done there."""
    if instr.traits.address >= 0:
        moved = instr.operands[0] if instr.opcode == "store" else instr
        kept = instr.opcode == "store" and has_pointer(moved.type)
        return [instr.operands[instr.traits.address]] if kept or _has_floats(facts, moved) else []
    if not instr.is_call:
        return []
    effect = facts.pointers.effect(instr)
    if effect is not None and effect.copy is not None:
        target, source = (instr.args[i] for i in effect.copy[:2])
        return [one for one, other in ((target, source), (source, target)) if _floats_behind(facts, other)]
    computes = any(_has_floats(facts, value) for value in (instr, *instr.args))
    return [instr.callee] if computes and not isinstance(resolve(instr.callee), Function) else []


def _has_floats(facts: Facts, value: Value) -> bool:
    if any(isinstance(kind, ty.FloatType) for _, kind, _ in leaves(value.type)):
        return True
    return value.type.scalar.is_int and bool(facts.types.carriers.floats(value))


def _floats_behind(facts: Facts, pointer: Value) -> bool:
    kinds = (kind for bit in bits_of(facts.pointers.of(pointer))
             for kind in facts.types.holds(facts.pointers.objects[bit]))  # fmt: skip
    return any(isinstance(kind, ty.FloatType) for kind in kinds)


def _leads_nowhere(facts: Facts, address: Value) -> bool:
    return isinstance(address, Instruction | Argument) and not facts.pointers.of(address)


def _watched(instr: Instruction) -> bool:
    assert instr.block is not None
    at = instr.block.instructions.index(instr)
    return any(before.is_call and before.callee_name == LOST for before in instr.block.instructions[max(at - 1, 0) : at])
