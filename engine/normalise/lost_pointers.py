"""Accesses through pointers of which no memory is known: they run nowhere, or an analysis has lost what they lead to.

A pointer that only ever is null leads nowhere, and nothing is read through it. That is what an empty points-to set says.
If it is wrong, numbers come out of that memory with a derivative of zero, and nobody is told. So a derivative looks when
it runs: a call that gets to such an access ends with an error that names the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import declare, text_constant

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["LOST", "watch_lost"]

LOST = "irgrad.tape.lost"
"""Ends a call: (whether to, where)."""
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
        look = declare(facts.module, LOST, ty.VOID, (ty.I1, ty.PTR), _LOOKS)
        b.call(look, [ConstInt(ty.I1, 1), text_constant(facts.module, locate(facts.module, instr) or "its own code")])
    return bool(found)


def _addresses(facts: Facts, instr: Instruction) -> list[Value]:
    """The pointers through which an instruction moves numbers or pointers, or calls."""
    if instr.traits.address >= 0:
        moved = instr.operands[0] if instr.opcode == "store" else instr
        carries = facts.activity.flow.carries(moved) or ty.may_hold_pointer(moved.type) or moved.type.scalar.is_fp
        return [instr.operands[instr.traits.address]] if carries else []
    if not instr.is_call:
        return []
    called = [] if isinstance(resolve(instr.callee), Function) else [instr.callee]
    effect = facts.pointers.effect(instr)
    return called + [instr.args[i] for i in (effect.copy or ())[:2]] if effect is not None else called


def _leads_nowhere(facts: Facts, address: Value) -> bool:
    return isinstance(address, Instruction | Argument) and not facts.pointers.of(address)


def _watched(instr: Instruction) -> bool:
    assert instr.block is not None
    at = instr.block.instructions.index(instr)
    return any(before.is_call and before.callee_name == LOST for before in instr.block.instructions[max(at - 1, 0) : at])
