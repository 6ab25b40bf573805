"""Which arguments of a call are the object by way of which the function was found.

In `o->methods->draw(o)` and in `o->draw(o)` the function that is called is read by way of the object that is handed
over. So a function is called only with objects in which it, or a table that holds it, is kept: of the shapes in one
list, the method of the discs sees the discs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_

from irgrad.engine.analyses.memory.objects import Object, bits_of, filled_elsewhere, overlaps, start_of
from irgrad.engine.ir.model import Instruction, Module, Value

Path = tuple[Instruction, ...]
"""Loads, from that in the object to that of the function."""

_MOST_LOADS = 2


def receivers(call: Instruction) -> dict[int, Path]:
    """The arguments of a call through a pointer by way of which the function was read: number -> loads."""
    paths: dict[Value, Path] = {}
    value, path = call.callee, Path()
    while len(path) < _MOST_LOADS and isinstance(value, Instruction) and value.opcode == "load" and value.type.is_ptr:
        path = (value, *path)
        value = start_of(value.operands[0])
        paths[value] = path
    starts = ((i, start_of(arg)) for i, arg in enumerate(call.args) if arg.type.is_ptr)
    return {i: paths[start] for i, start in starts if start in paths}


def filled_here(module: Module, obj: Object) -> bool:
    """Every pointer in an object was stored by functions that were read."""
    known = obj.kind in ("alloca", "heap", "global", "function")
    return known and not overlaps(obj) and not filled_elsewhere(module, obj)


def led_to(bit: int, path: Path, held: Callable[[int, Value], int], known: dict[tuple[int, int], int]) -> int:
    """The objects that loads find, one after the other, from an object on, as a set of bits; -1 where any may be.

    held: the same of what an object holds at an address in it; known: what was found out, by object and loads left
    """
    if not path:
        return 1 << bit
    key = bit, len(path)
    if key not in known:
        found = held(bit, path[0].operands[0])
        if found >= 0 and path[1:]:
            found = reduce(or_, (led_to(inner, path[1:], held, known) for inner in bits_of(found)), 0)
        known[key] = found
    return known[key]
