"""Integers that are no addresses, though by the points-to sets they may be: they need no shadow.

Which objects a pointer may mean is known of a piece of memory as a whole: the rows of a matrix, loaded beside the
address of its numbers, seem to be an address as well. And the distance of two addresses carries the objects of the
first, so that the other plus the distance leads there. As long as nobody adds that up, a distance is a number like any
other: the size of a vector, on a tape beside pointers. Where an address is computed from what was loaded beside
distances, their shadows are asked for after all.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.types.memory_types import MemoryTypes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, INT_BINARY, RESIZES, having

_COMPUTES = INT_BINARY | CHOICES | RESIZES
_DISPLACES = having("integer_arithmetic") & having("displaces")


class Numbers:
    """`distances`: memory in which distances of addresses are stored, as a mask of objects; `measured`: the stores."""

    def __init__(self, pointers: Pointers, types: MemoryTypes) -> None:
        self._pointers = pointers
        self._types = types
        self._known: set[Value] = set()
        self._stored: set[Value] = set()
        self.distances = 0
        self.measured: set[tuple[Value, Value]] = set()  # (what is stored, address)
        stores: list[tuple[Value, Value]] = []
        copies: list[tuple[int, int]] = []
        for fn in pointers.functions:
            for instr in fn.instructions():
                if instr.opcode == "store" and instr.operands[0].type.is_int:
                    stores.append((instr.operands[0], instr.operands[1]))
                elif instr.is_call:
                    copies += ((pointers.of(to), pointers.of(source)) for to, source in copies_of(pointers, instr))
        stores = [(v, a) for v, a in stores if pointers.of(v) and self._is_stored(v, a)]
        before = -1
        while before != self.distances:
            before = self.distances
            self._known.clear()
            self.measured.update(store for store in stores if not self.computed(store[0]))
            for _, address in self.measured:
                self.distances |= pointers.of(address)
            for target, source in copies:
                self.distances |= target if source & self.distances else 0

    def computed(self, value: Value) -> bool:
        """An integer that is computed from integers in memory that holds integers at that place, pointers elsewhere."""
        return self._only(value, self._known, distances=False)

    def _is_stored(self, value: Value, address: Value) -> bool:
        """Such an integer, or the distance of two addresses, where only integers lie."""
        return self._integers(address, value.type) and self._only(value, self._stored, distances=True)

    def _only(self, value: Value, known: set[Value], *, distances: bool) -> bool:
        seen: set[Value] = set()
        work = [value]
        while work:
            value = work.pop()
            if value in seen or value in known or not self._pointers.of(value):
                continue
            seen.add(value)
            if not isinstance(value, Instruction) or not value.type.is_int:
                return False
            if distances and value.opcode == "sub" and all(map(self._address, value.operands)):
                continue
            kind = self._types.carries(value)
            if kind is not INT and not (kind is None and value.opcode in INT_BINARY):
                return False  # what is computed of numbers is one, stored or not
            if value.opcode == "load":
                if not self._integers(value.operands[0], value.type) or (
                    not distances and self._pointers.of(value.operands[0]) & self.distances
                ):
                    return False
            elif value.opcode in _COMPUTES:
                work += value.operands[1:] if value.opcode == "select" else value.operands
            else:
                return False
        known |= seen
        return True

    def _integers(self, address: Value, type_: ty.Type) -> bool:
        layout = self._types.access(address, ty.store_size(type_))
        return bool(layout) and all(kind is INT for _, kind in layout)

    def _address(self, value: Value) -> bool:
        """Certainly the address of something, perhaps moved by a number."""
        seen: set[Value] = set()
        work = [value]
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            if not isinstance(value, Instruction) or not value.type.is_int:
                return False
            if value.opcode in CHOICES:
                work += value.operands[1:] if value.opcode == "select" else value.operands
            elif value.opcode in _DISPLACES and not self._pointers.of(value.operands[1]):
                work.append(value.operands[0])
            elif value.opcode != "ptrtoint" and (value.opcode != "load" or self._types.carries(value) is not PTR):
                return False
        return True


def copies_of(pointers: Pointers, call: Instruction) -> list[tuple[Value, Value]]:
    """(target, source) of the memory that a call copies or moves."""
    effect = pointers.effect(call)
    if effect is None:
        return []
    found: list[tuple[Value, Value]] = [] if effect.moves is None else [(call, call.args[effect.moves])]
    return found if effect.copy is None else [*found, (call.args[effect.copy[0]], call.args[effect.copy[1]])]
