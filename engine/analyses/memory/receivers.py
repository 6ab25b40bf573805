"""Which objects a method is called with: those that lead to a table with this method.

In `o->methods->draw(o)` and in `o->draw(o)` the function that is called was read by way of the object that is handed
over. A function is called only with objects in which it, or a table that holds it, is kept: of the shapes in one list,
the method of the discs sees the discs. What is kept where is taken from a first solution without fields, which has at
least all of it.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import Object, PointsTo, bits_of, filled_elsewhere, overlaps
from irgrad.engine.ir.model import Function, Instruction, Value

_LEVELS = 2
"""Loads between an object and the function: one for a function kept in the object, two for one in its table."""
_KNOWN = ("alloca", "heap", "global")


class Receivers:
    """Asked with the functions and the sites of objects, which are the same in every solution of a module."""

    def __init__(self, pointers: PointsTo) -> None:
        self._pointers = pointers
        self._admitted: dict[tuple[Function, Value, int], bool] = {}

    def admits(self, fn: Function, obj: Object, level: int) -> bool:
        """Whether an object may be the one by way of which, in so many loads, the function was found."""
        if obj.site is None or obj.kind not in _KNOWN or overlaps(obj):
            return True
        key = (fn, obj.site, level)
        if key not in self._admitted:
            target = self._pointers.object_of.get(fn)
            mine = self._pointers.object_of.get(obj.site)
            self._admitted[key] = target is None or mine is None or self._leads(mine, target, level)
        return self._admitted[key]

    def _leads(self, obj: Object, target: Object, level: int) -> bool:
        if obj.kind not in _KNOWN or overlaps(obj) or filled_elsewhere(self._pointers.module, obj):
            return obj.kind != "function"
        held = self._pointers.contents(obj)
        if held & 1 or self._pointers.expand(held) != held:
            return True
        if level == 1:
            return bool(held >> target.index & 1)
        return any(self._leads(self._pointers.objects[bit], target, level - 1) for bit in bits_of(held))


def receivers(call: Instruction) -> dict[int, int]:
    """The arguments of a call through a pointer by way of which the function was read: number -> loads between."""
    levels: dict[Value, int] = {}
    value = call.callee
    for level in range(1, _LEVELS + 1):
        if not (isinstance(value, Instruction) and value.opcode == "load" and value.type.is_ptr):
            break
        value = _start(value.operands[0])
        levels[value] = level
    return {i: levels[start] for i, arg in enumerate(call.args) if (start := _start(arg)) in levels}


def _start(address: Value) -> Value:
    """The pointer from which an address in the same object is computed."""
    while isinstance(address, Instruction) and address.opcode in ("getelementptr", "bitcast"):
        address = address.operands[0]
    return address
