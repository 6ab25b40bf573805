"""Which arguments of a call are the object by way of which the function was found.

In `o->methods->draw(o)` and in `o->draw(o)` the function that is called is read by way of the object that is handed
over. So a function is called only with objects in which it, or a table that holds it, is kept: of the shapes in one
list, the method of the discs sees the discs.

The second half of a derivative (`differentiate/reverse`) is handed what the first half of the same function has kept,
though both are called through tables where the function is: of the records of all layers of a network, each has its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import count
from operator import or_
from zlib import crc32

from irgrad.engine.analyses.memory.inclusion import Inclusion
from irgrad.engine.analyses.memory.objects import Object, bits_of, filled_elsewhere, overlaps, start_of
from irgrad.engine.ir.model import Argument, Instruction, Module, Value

RECORD = "irgrad.record"
"""Metadata of an allocation for what the first half of a derivative keeps, and attribute of the argument by which the
second half gets it: whose derivative it is."""

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


def name_record(module: Module, allocation: Value, argument: Value, owner: str | None) -> None:
    """An argument gets nothing but what is allocated here, of all memory that is named like this."""
    name = f"{crc32((owner or '').encode('utf-8', 'surrogateescape')):08x}"
    if isinstance(allocation, Instruction) and isinstance(argument, Argument):
        node = next(node for i in count(len(module.metadata)) if (node := f"!{i}") not in module.metadata)
        module.metadata[node], allocation.metadata[RECORD] = f'!{{!"{name}"}}', node
        argument.attrs = f'{argument.attrs} "{RECORD}"="{name}"'.strip()


def taken_record(argument: Argument) -> str:
    """The name of the memory that an argument leads to, "" where it may be any."""
    return argument.attrs.partition(f'"{RECORD}"="')[2].partition('"')[0] if RECORD in argument.attrs else ""


class Chosen:
    """Arguments that get only some of the objects that their callers hand over: receivers and records. `held` says what
    an object holds at an address, as far as that is known by now."""

    def __init__(
        self, module: Module, graph: Inclusion, objects: list[Object], held: Callable[[int, Value], int]
    ) -> None:
        self._module, self._graph, self._objects, self._held = module, graph, objects, held
        self._receivers: list[tuple[int, int, int, Path]] = []  # argument, parameter, the function, how it was read
        self._records: list[tuple[int, int, str]] = []  # argument, parameter, the name of the records

    def receiver(self, actual: int, formal: int, wanted: int, path: Path) -> None:
        """A parameter gets the objects from which the loads of `path` lead to what `wanted` holds."""
        self._receivers.append((actual, formal, wanted, path))

    def record(self, actual: int, formal: int, name: str) -> None:
        """A parameter gets no record of another name."""
        self._records.append((actual, formal, name))

    def settle(self) -> bool:
        """Hand over what is known by now. True when there was anything new."""
        points, add = self._graph.points, self._graph.add
        known: dict[Path, dict[tuple[int, int], int]] = {}
        for actual, formal, wanted, path in tuple(self._receivers):
            found = known.setdefault(path, {})
            for bit in bits_of(points[actual] & ~points[formal]):
                if led_to(bit, path, self._held, found) & points[wanted]:
                    add(formal, 1 << bit)
        for actual, formal, name in tuple(self._records):
            for bit in bits_of(points[actual] & ~points[formal]):
                if self._named(bit) in ("", name):
                    add(formal, 1 << bit)
        return bool(self._graph.work)

    def _named(self, bit: int) -> str:
        site = self._objects[bit].site
        node = site.metadata.get(RECORD) if isinstance(site, Instruction) else None
        return self._module.metadata[node].partition('"')[2].partition('"')[0] if node else ""
