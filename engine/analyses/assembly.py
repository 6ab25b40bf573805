"""What inline assembly does to data, from its operands: that which `prepare` has not understood (see ir/assembly.py).

It may compute what it wants from its inputs, and change memory that it is given the address of. A "memory" clobber
without an address is a fence.
"""

from __future__ import annotations

from irgrad.engine.analyses.effects import Effect
from irgrad.engine.analyses.objects import may_hold_pointer
from irgrad.engine.ir.model import Instruction

__all__ = ["effect_of_assembly"]


def effect_of_assembly(call: Instruction) -> Effect:
    """Its effect on memory; values flow from its float operands to its results."""
    pointers = [i for i, arg in enumerate(call.args) if may_hold_pointer(arg.type)]
    return Effect(reads=pointers, writes=pointers)
