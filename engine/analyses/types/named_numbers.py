"""Integers beside floats in one block of memory, where what is at which place is not known.

A structure of arrays in one allocation has an array of integers somewhere among its arrays of floats; how far from the
start depends on their length. The language says that what is stored as a float is not read as an `int`, and `!tbaa`
says which accesses the source makes as one. A program that breaks the rule (the bits of floats as integers, in place)
would lose a derivative without notice, so it is believed only of memory that is given integers which come from no
memory: a constant, a counter, something computed.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir.model import Argument, Instruction, Value

__all__ = ["NamedNumbers"]

_MOST = 64  # values that an integer is made of


class NamedNumbers:
    """`are(access)`: whether a load or store finds numbers alone, wherever in its memory it is."""

    def __init__(self, tbaa: Tbaa, ranges: Ranges) -> None:
        self._tbaa = tbaa
        self._ranges = ranges
        self._given: set[int] = set()

    def stored(self, store: Instruction) -> None:
        """A store of an integer."""
        value, pointer = store.operands
        if self._named(store) and not _from_memory(value):
            self._given.update(self._ranges.places(pointer))

    def are(self, access: Instruction) -> bool:
        """The source calls what is loaded or stored an integer, and all memory that it may be was given such."""
        if not self._given or not self._named(access):
            return False
        spots = self._ranges.places(access.operands[access.opcode == "store"])
        return any(not places.exact for places in spots.values()) and all(bit in self._given for bit in spots)

    def _named(self, access: Instruction) -> bool:
        tag = access.metadata.get("tbaa")
        return bool(tag) and self._tbaa.kind(tag or "") is INT


def _from_memory(value: Value) -> bool:
    """Whether loads, calls, arguments or the bits of floats are among what an integer is computed of."""
    seen, work = {value}, [value]
    while work:
        value = work.pop()
        if isinstance(value, Argument):
            return True
        if isinstance(value, Instruction):
            bits = value.opcode == "bitcast" and value.operands[0].type.is_fp
            if bits or value.opcode == "load" or value.is_call or len(seen) > _MOST:
                return True
            fresh = [operand for operand in value.operands if operand not in seen]
            seen.update(fresh)
            work += fresh
    return False
