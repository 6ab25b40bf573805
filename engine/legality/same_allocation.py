"""Whether two addresses lie in one allocation: shown by the value or the memory that both come from.

The end of a vector and its beginning are fields of one object, a pointer that walks comes from where it began, the two
ends of a span were handed over together. Two elements of a table of pointers may be anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.ir.model import Argument, Constant, ConstInt, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, having

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["SameAllocation"]

_DEEPEST = 6
_DISPLACES = having("integer_arithmetic") & having("displaces")
_ONE_INSTANCE = ("argument", "alloca", "global")


class SameAllocation:
    """callers: the calls of each function."""

    def __init__(self, unit: Unit, callers: dict[Function, list[Instruction]]) -> None:
        self._unit = unit
        self._callers = callers

    def shown(self, first: Value, second: Value, depth: int = _DEEPEST) -> bool:
        """Whether it is known that the two, of which neither is null, lie in one allocation."""
        if not depth:
            return False
        starts = self._starts(first), self._starts(second)
        return all(self._pair(a, b, depth) for a in starts[0] for b in starts[1])

    def _starts(self, value: Value) -> list[Value]:
        """What an address was made from by moving it within its allocation."""
        found: dict[Value, None] = {}
        work, seen = [value], {value}
        while work:
            value = work.pop()
            origins = self._origins(value)
            found.update({} if origins or _nowhere(value) else {value: None})
            work += [o for o in origins if o not in seen]
            seen.update(origins)
        return list(found)

    def _origins(self, value: Value) -> list[Value]:
        if not isinstance(value, Instruction):
            return []
        if value.opcode == "phi":
            origins = [o for o in value.operands if not self._comes_from(o, value)]
            return origins if all(self._before(o, value) for o in origins) else []
        if value.opcode in CHOICES:
            return value.operands[1:] if value.opcode == "select" else list(value.operands)
        moved = self._moves(value)
        return [] if moved is None else [moved]

    def _moves(self, value: Value) -> Value | None:
        """The address that an instruction casts or moves by a number."""
        if not isinstance(value, Instruction):
            return None
        number = value.opcode in _DISPLACES and not self._unit.pointers.of(value.operands[1])
        return value.operands[0] if number or value.opcode in ("getelementptr", "ptrtoint", "inttoptr") else None

    def _comes_from(self, value: Value | None, phi: Value) -> bool:
        while value is not None and value is not phi:
            value = self._moves(value)
        return value is phi

    @staticmethod
    def _before(value: Value, phi: Instruction) -> bool:
        """Whether a value is the same in each turn of the loop that the phi may begin."""
        if not isinstance(value, Instruction):
            return True
        fn = phi.block.function if phi.block is not None else None
        return fn is not None and get(Dominators, fn).value_dominates(value, phi)

    def _pair(self, first: Value, second: Value, depth: int) -> bool:
        if first is second or self._one_instance(first, second):
            return True
        if isinstance(first, Argument) and isinstance(second, Argument):
            fn = first.function if first.function is second.function else None
            calls = self._callers.get(fn, []) if fn is not None else []
            ends = [(call.args[first.index], call.args[second.index]) for call in calls]
            return bool(ends) and all(self.shown(a, b, depth - 1) for a, b in ends)
        return _loaded(first) and _loaded(second) and self._fields(first, second)  # type: ignore[arg-type]

    def _one_instance(self, first: Value, second: Value) -> bool:
        """Whether both point to one object, of which there is one at a time."""
        bits = self._unit.pointers.of(first)
        if bits != self._unit.pointers.of(second) or bits.bit_count() != 1:
            return False
        return self._unit.pointers.objects[bits.bit_length() - 1].kind in _ONE_INSTANCE

    def _fields(self, first: Instruction, second: Instruction) -> bool:
        """Whether two pointers were loaded from different fields of one object."""
        (base, at), (other, there) = map(_field, (first.operands[0], second.operands[0]))
        return at != there and _same(base, other, _DEEPEST)


def _nowhere(value: Value) -> bool:
    """Null, and what is not defined."""
    return isinstance(value, Constant) and not isinstance(value, GlobalVariable)


def _loaded(value: Value) -> bool:
    return isinstance(value, Instruction) and value.opcode == "load"


def _field(address: Value) -> tuple[Value, tuple[int, ...]]:
    """What an address is a constant distance from, and the indices that lead there."""
    at: tuple[int, ...] = ()
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        indices = [o.value for o in address.operands[1:] if isinstance(o, ConstInt)]
        if len(indices) < len(address.operands) - 1:
            break
        at = (*indices, *at) if any(indices) else at
        address = address.operands[0]
    return address, at


def _same(first: Value, second: Value, depth: int) -> bool:
    """Whether two addresses are computed alike."""
    if first is second:
        return True
    alike = isinstance(first, Instruction) and isinstance(second, Instruction) and first.opcode == second.opcode
    if not alike or not depth or first.opcode not in ("load", "getelementptr"):  # type: ignore[attr-defined]
        return isinstance(first, ConstInt) and isinstance(second, ConstInt) and first.value == second.value
    pairs = zip(first.operands, second.operands, strict=True)  # type: ignore[attr-defined]
    return all(_same(a, b, depth - 1) for a, b in pairs)
