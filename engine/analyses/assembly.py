"""What inline assembly does to data, from its constraints.

Assembly with an empty template does nothing: it is there to keep an optimiser from looking through a value or from
moving memory accesses (`asm volatile("" : "+x"(v) : : "memory")`). Any other may compute what it wants from its inputs,
and change memory that it is given the address of; a "memory" clobber without an address is a fence.
"""

from __future__ import annotations

import re

from irgrad.engine.analyses.effects import Effect
from irgrad.engine.analyses.objects import may_hold_pointer
from irgrad.engine.ir.model import InlineAsm, Instruction, Value

__all__ = ["effect_of_assembly", "passed_through"]

_PARTS = re.compile(r'^asm\b[^"]*"((?:[^"\\]|\\.)*)"\s*,\s*"((?:[^"\\]|\\.)*)"')
_NOTHING = Effect(inactive=True, nothing=True)


def _parts(call: Instruction) -> tuple[str, list[str]] | None:
    """Template and constraints of a call of assembly."""
    found = _PARTS.match(call.callee.text) if isinstance(call.callee, InlineAsm) else None
    return (found[1], found[2].split(",")) if found is not None else None


def effect_of_assembly(call: Instruction) -> Effect:
    """Its effect on memory and values."""
    parts = _parts(call)
    if parts is not None and not parts[0] and (not call.type.is_fp or passed_through(call) is not None):
        return _NOTHING
    pointers = [i for i, arg in enumerate(call.args) if may_hold_pointer(arg.type)]
    return Effect(reads=pointers, writes=pointers)


def passed_through(call: Instruction) -> Value | None:
    """The operand that assembly with an empty template hands on as its only result."""
    parts = _parts(call)
    if parts is None or parts[0]:
        return None
    at, given, outputs = -1, 0, []
    for number, constraint in enumerate(parts[1]):
        if constraint.startswith("=") and "*" not in constraint:
            outputs.append(str(number))
        elif not constraint.startswith(("~", "!")):
            at = given if [constraint] == outputs else at
            given += 1
    operand = call.args[at] if len(outputs) == 1 and at >= 0 else None
    return operand if operand is not None and operand.type is call.type else None
