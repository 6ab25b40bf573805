"""Splitting memory that holds several pointers into cells, so that a struct of pointers does not mix its fields.

From a first, field-insensitive solution and the offsets of its accesses: an object is split when every place where
pointers are loaded or stored is known modulo one period (for a single record: exactly), and the places do not overlap.
What lies at other places (a copy of the whole object takes it along) has one cell more. Very wide values and copies at
other places go to all cells: the second solution is as sound as the first.
"""

from __future__ import annotations

from itertools import islice, pairwise
from math import gcd
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.copied_places import copied_places
from irgrad.engine.analyses.memory.objects import initial_pointers, pointer_places
from irgrad.engine.analyses.memory.receivers import receivers
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets
from irgrad.engine.analyses.memory.text_copies import copies_text, hashes_text
from irgrad.engine.ir.model import ConstAggregate, ConstInt, GlobalVariable, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.objects import PointsTo
    from irgrad.engine.analyses.memory.value_ranges import Ranges

WHOLE = 1 << 40  # the period of a record that does not repeat
_LEAST_PERIOD = 16
_MAX_CELLS = 512
_MOST_STEPS = 512
Where = tuple[Value, int | None]
"""An address and a distance from it; None: the cell of the rest."""
REST = -1
"""The cell of all places that no load or store names: copies of the whole object may bring pointers there."""
MOST_PLACES = 8
"""Values with more pointers than that are in no cell of their own: they go to all cells."""


class Cells:
    """`of`: allocation site -> (period, places modulo it); `places`: the offsets of each address."""

    __slots__ = ("_pointers", "_ranges", "of", "texts", "worth")

    def __init__(self, pointers: PointsTo, ranges: Ranges) -> None:
        self._pointers = pointers
        self._ranges = ranges
        self.of: dict[Value, tuple[int, tuple[int, ...]]] = {}
        seen: dict[int, set[Offsets]] = {}
        for fn in pointers.functions:
            for instr in fn.instructions():
                for address, at in () if hashes_text(pointers.module, instr) else _pointer_accesses(instr):
                    for bit, places in ranges.places(address).items():
                        seen.setdefault(bit, set()).add(places.shift(at))
        accessed = {bit for bit in seen if pointers.contents(pointers.objects[bit])}
        copied = set()
        for site, obj in pointers.object_of.items():
            if initial := _initial_places(site):
                copied.add(obj.index)
                seen.setdefault(obj.index, set()).update(initial)
        brought = copied_places(pointers, ranges, seen)
        copied |= {bit for bit in brought if bit not in seen and pointers.contents(pointers.objects[bit])}
        for bit in dict.fromkeys((*seen, *brought)):
            obj = pointers.objects[bit]
            if obj.site is None or obj.kind not in ("alloca", "heap", "global"):
                continue
            if bit not in accessed | copied:
                continue
            own, least = seen.get(bit, set()), 1 if bit in copied else 2
            cells = _cells(own | brought[bit], least, obj.size) if bit in brought else None
            cells = cells or _cells(own, least, obj.size)
            if cells is not None:
                self.of[obj.site] = cells
        self.texts = {
            instr for fn in pointers.functions for instr in fn.instructions()
            if instr.is_call and (effect := pointers.effect(instr)) is not None and effect.copy is not None
            and copies_text(pointers.module, instr, effect.copy[2])
        }  # fmt: skip
        """Calls that copy the text of a string."""
        split = any(pointers.object_of[site].index in accessed for site in self.of)
        self.worth = split or bool(self.texts) or self._methods()
        """A second solution knows more than the first."""

    def _methods(self) -> bool:
        return any(i.is_call and receivers(i) for fn in self._pointers.functions for i in fn.instructions())

    def places(self, address: Value, site: Value | None) -> Offsets | None:
        """The offsets of an address within the object of a site; None when it does not point there."""
        obj = None if site is None else self._pointers.object_of.get(site)
        return TOP if obj is None else self._ranges.spots.at(address, obj.index)

    def is_number(self, load: Instruction) -> bool:
        """Whether what a load reads is called an integer elsewhere, and is no pointer there."""
        return self._ranges.spots.is_number(load)

    def outside(self, site: Value | None, where: int) -> bool:
        """Whether a pointer has no room at a place in the object of a site."""
        size = None if site is None else self._pointers.object_of[site].size
        return size is not None and not 0 <= where <= size - 8

    def steps(self, source_address: Value, target_address: Value, length: Value) -> tuple[int, ...] | None:
        """The distances from the start of a copy at which the objects on either side have cells, as far as it reaches,
        wherever it is known to begin in them; None: not known in any, too many, or they repeat at different steps as
        far as nobody knows."""
        found: list[tuple[int, tuple[int, ...], set[int]]] = []
        for address in (source_address, target_address):
            for bit, places in self._ranges.places(address).items():
                site = self._pointers.objects[bit].site
                size = self._pointers.objects[bit].size
                starts = None if site is None or site not in self.of else residues(places, self.of[site][0], size)
                if site is not None and starts is not None:
                    found.append((*self.of[site], starts))
        shortest = min((period for period, _, _ in found), default=0)
        end = length.value if isinstance(length, ConstInt) else shortest
        alike = all(period == shortest for period, _, _ in found)
        if not found or not (alike or (isinstance(length, ConstInt) and end <= _MOST_STEPS * _LEAST_PERIOD)):
            return None
        reached = set[int]()
        for period, cells, starts in found:
            for step in {at - start for at in cells for start in starts}:
                # a record that does not repeat has nothing more behind its last cell
                reached.update((step,) if period == WHOLE else range(step % period, period if alike else end, period))
        steps = sorted(step for step in reached if 0 <= step < end)
        return tuple(steps) if len(steps) <= _MOST_STEPS else None


def residues(places: Offsets, period: int, size: int | None = None) -> set[int] | None:
    """The places modulo the period, in an object of this size; None when they are not known."""
    stride = places.stride
    if period == WHOLE and size is not None and (inside := _inside(places, size)) is not None:
        return inside
    if (stride and period == WHOLE) or (stride % period if stride else 0) or places.below:
        return None
    return {x % period for x in places.expand()}


def _pointer_accesses(instr: Instruction) -> list[tuple[Value, int]]:
    """The addresses of the pointers that a load or store moves, each with the distance from it."""
    if instr.opcode == "load":
        type_, address = instr.type, instr.operands[0]
    elif instr.opcode == "store":
        type_, address = instr.operands[0].type, instr.operands[1]
    else:
        return []
    places = pointer_places(type_)
    return [(address, at) for at in places] if len(places) <= MOST_PLACES else []


def _initial_places(site: Value) -> set[Offsets]:
    """Where the initial value of a struct that is copied has pointers."""
    if not isinstance(site, GlobalVariable) or not isinstance(site.init, ConstAggregate) or not site.constant:
        return set()
    return {Offsets(at) for at, _ in islice(initial_pointers(site.init), _MAX_CELLS)}


def _inside(places: Offsets, size: int) -> set[int] | None:
    """The places at which an object of this size has room for a pointer; None where they are many."""
    stride = places.stride or size + 1
    if stride < _LEAST_PERIOD or size > _MAX_CELLS * stride:
        return None
    return {x for at in places.expand() for x in range(at % stride if places.below else at, size - 7, stride) if x >= 0}


def _cells(seen: set[Offsets], least: int, size: int | None) -> tuple[int, tuple[int, ...]] | None:
    if size is not None and any(p.stride for p in seen):
        exact = [_inside(p, size) for p in seen]
        found = sorted(set[int]().union(*(places for places in exact if places is not None)))
        if least <= len(found) <= _MAX_CELLS and min((b - a for a, b in pairwise(found)), default=8) >= 8:
            return WHOLE, tuple(found)
    known = {p for p in seen if not p.below and not 0 < p.stride < _LEAST_PERIOD}  # others mean all cells
    period = gcd(*(p.stride for p in known))
    if 0 < period < _LEAST_PERIOD:
        return None
    period = period or WHOLE
    found = sorted({x % period for p in known for x in p.expand()})
    if not least <= len(found) <= _MAX_CELLS:
        return None
    gaps = [b - a for a, b in zip(found, [*found[1:], found[0] + period], strict=True)]
    return (period, tuple(found)) if min(gaps) >= 8 else None
