"""Which pointers memory holds, and where in it.

What is stored to an object is kept by place. A pointer that may lead to very many objects stores to all of them, and a
load through it reads all: what such pointers store is kept once for each set of objects (there are few of them), and
so is what a load from such a set finds, so that neither goes through the objects one by one. Where there are very many
sets as well, one of all objects takes their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from irgrad.engine.analyses.memory import strided_sets as off
from irgrad.engine.analyses.memory.due_instructions import DueInstructions
from irgrad.engine.analyses.memory.objects import PointsTo, alignment, bits_of
from irgrad.engine.analyses.memory.spots import ANY, MOST, Place, Spots, include, union
from irgrad.engine.analyses.memory.strided_sets import TOP, ZERO, Offsets
from irgrad.engine.ir.model import GlobalVariable, Instruction, Value
from irgrad.engine.ir.types import may_hold_pointer

_MOST_PLACES = 256
_MOST_SEEN = 1024
_MOST_SETS = 96
_WIDEST = 16  # bytes of the largest alignment that sets are told apart by


Read = dict[tuple[int, int], int]
"""How much of the changes of each region, and of the sets that it is in, somebody has read."""


class Merge(Protocol):
    """Joins spots into a table, with widening; the last argument tells tables apart."""

    def __call__(self, table: dict[Place, Spots], key: Place, new: Spots, region: int, /) -> bool: ...


class _Set:
    """Objects that pointers lead to together."""

    __slots__ = ("align", "log", "mask", "near", "number", "readers", "seen")

    def __init__(self, number: int, mask: int, align: int) -> None:
        self.number = number
        self.mask = mask
        self.align = align
        self.near: list[_Set] = [self]  # those that share objects with it
        self.readers: set[Instruction] = set()
        self.seen: dict[Place, Spots] = {}  # what a load from any of its objects may find
        self.log: list[Place] = []  # places of which more was found, in order

    def meet(self, other: _Set) -> None:
        """Another set, with which it shares objects."""
        self.near.append(other)
        other.near.append(self)

    def read_by(self, readers: set[Instruction]) -> None:
        """These instructions read one of its objects."""
        self.readers |= readers

    def find(self, place: Place, spots: Spots) -> None:
        """More is stored in one of its objects."""
        if place not in self.seen and len(self.seen) >= _MOST_SEEN:
            place = (TOP, None)
        before = self.seen.get(place)
        after = union(before, spots)
        if after is not None and after != before:
            self.seen[place] = after
            self.log.append(place)


class HeldPointers:
    """By region: an object, by its number, or a set of them, by a number below `ANY`."""

    def __init__(
        self, pointers: PointsTo, due: DueInstructions, merge: Merge, constant: Callable[[Value], Spots | None]
    ) -> None:
        self._pointers = pointers
        self._due = due
        self._merge = merge
        self._constant = constant  # where a constant leads
        self._own: dict[int, dict[Place, Spots]] = {}  # region -> what was stored to all of it
        self._log: dict[int, list[Place]] = {}  # region -> places of which that changed, in order
        self._sets: list[_Set] = []
        self._around: dict[int, list[_Set]] = {}  # object -> the sets that it is in
        self._regions: dict[int, tuple[int, ...]] = {}
        self._alike: dict[frozenset[tuple[int, Offsets]], Spots] = {}
        self._from_start: dict[int, tuple[Spots, ...]] = {}
        self._alignments: dict[int, int] = {}
        self.coarse = False  # no new places are told apart any more
        self.together = False  # one set of all objects stands for others

    def settle_for(self, coarse: bool) -> None:
        """Whether no new places are told apart from now on."""
        self.coarse = coarse

    # -- regions ------------------------------------------------------------------------------------------------------

    def regions(self, mask: int) -> tuple[int, ...]:
        """The regions that a pointer to these objects leads to: sets where they are many."""
        found = self._regions.get(mask)
        if found is None:
            found = tuple(bits_of(mask)) if mask.bit_count() <= MOST else self._made(mask)
            self._regions[mask] = found
        return found

    def _made(self, mask: int) -> tuple[int, ...]:
        if len(self._sets) >= _MOST_SETS:
            self.together = True
            mask = (1 << len(self._pointers.objects)) - 1
            if mask in self._regions:
                return self._regions[mask]
        parts: dict[int, int] = {}
        for bit in bits_of(mask):
            align = min(self._alignment(bit), _WIDEST)
            parts[align] = parts.get(align, 0) | 1 << bit
        found = self._regions[mask] = tuple(self._set(part, align) for align, part in parts.items())
        return found

    def _set(self, mask: int, align: int) -> int:
        fresh = _Set(ANY - 1 - len(self._sets), mask, align)
        for other in self._sets:
            if other.mask & mask:
                fresh.meet(other)
                for place, spots in self._own.get(other.number, {}).items():
                    fresh.find(place, spots)
        for bit in bits_of(mask):
            self._around.setdefault(bit, []).append(fresh)
            fresh.read_by(self._due.readers(bit))
            for place, spots in self._own.get(bit, {}).items():
                fresh.find(place, spots)
        self._sets.append(fresh)
        return fresh.number

    def _numbered(self, region: int) -> _Set:
        return self._sets[ANY - 1 - region]

    def _alignment(self, bit: int) -> int:
        found = self._alignments.get(bit)
        if found is None:
            found = self._alignments[bit] = alignment(self._pointers.objects[bit])
        return found

    def aligned(self, region: int, places: Offsets, align: int) -> Offsets | None:
        """Those of the places in a region that an access of this alignment may have; None where none is."""
        if align <= 1 or region == ANY:
            return places
        return off.multiples(places, min(align, self.alignment(region)))

    def alignment(self, region: int) -> int:
        """Of what number the addresses are multiples at which the objects of a region begin."""
        return 1 if region == ANY else self._alignment(region) if region >= 0 else self._numbered(region).align

    # -- what they hold -----------------------------------------------------------------------------------------------

    def keep(self, region: int, place: Place, spots: Spots) -> None:
        """A pointer is stored at a place."""
        table, (where, tag) = self._own.setdefault(region, {}), place
        if where.below:  # both ways from any of them is the same
            place = (Offsets(where.start % where.stride, where.terms, True), tag)
        if place not in table and (self.coarse or len(table) >= _MOST_PLACES):
            place = (TOP, None)
        before = table.get(place)
        self._merge(table, place, spots, region)
        if table[place] is before:
            return
        now = table[place] = self._one(table[place])
        self._log.setdefault(region, []).append(place)
        if region >= 0:
            self._due.stored(region)
            near = self._around.get(region, ())
        else:
            self._due.changed(self._numbered(region).readers)
            near = self._numbered(region).near
        for one in near:
            one.find(place, now)

    def _one(self, spots: Spots) -> Spots:
        """One object for all that are equal: loads and copies put together what many places hold alike, each once."""
        return self._alike.setdefault(frozenset(spots.items()), spots)

    def version(self, region: int) -> int:
        """Another number whenever more is stored in a region."""
        if region < 0:
            return len(self._numbered(region).log)
        return sum([len(self._log.get(number, ())) for number in self._parts(region)])

    def stored(self, region: int, read: Read | None = None) -> Iterator[tuple[Place, Spots]]:
        """The pointers in a region: what was stored, and what was there from the start. read: how far who asks has read
        what was stored, which is moved on: only what is new since is given then."""
        read = {} if read is None else read
        begun = (region, region) in read
        read.setdefault((region, region), 0)
        if region < 0:
            one = self._numbered(region)
            yield from _since(one.log, one.seen, (region, region), read)
        else:
            for number in self._parts(region):
                if log := self._log.get(number):
                    yield from _since(log, self._own[number], (region, number), read)
        if begun:
            return
        first = self._from_start.get(region)
        if first is None:
            first = self._from_start[region] = tuple(self._first(region))
        for spots in first:
            yield (TOP, None), spots

    def _parts(self, region: int) -> Iterator[int]:
        """An object, and the sets that it is in."""
        yield region
        for one in self._around.get(region, ()):
            yield one.number

    def _first(self, region: int) -> Iterator[Spots]:
        mask = 1 << region if region >= 0 else self._numbered(region).mask
        escaped = self._pointers.escaped_mask
        if mask & escaped:  # outsiders may store there what they know
            yield {ANY: TOP} if escaped.bit_count() > MOST else dict.fromkeys(bits_of(escaped), TOP)
        inner = {self._pointers.pointee_of[bit]: ZERO for bit in bits_of(mask) if bit in self._pointers.pointee_of}
        if inner:
            yield inner
        total: Spots = {}
        initials = [self._initial(bit) for bit in bits_of(mask)]
        for spots in initials:
            for bit, places in (spots or {}).items():
                include(total, bit, places)
        if total or any(spots is not None for spots in initials):
            yield total

    def _initial(self, bit: int) -> Spots | None:
        """Where the initial value of a variable leads."""
        obj = self._pointers.objects[bit]
        var = obj.site if obj.kind == "global" else None
        if not isinstance(var, GlobalVariable) or var.init is None or not may_hold_pointer(var.value_type):
            return None
        return self._constant(var.init)


def _since(log: list[Place], table: dict[Place, Spots], key: tuple[int, int], read: Read) -> list[tuple[Place, Spots]]:
    """The places that have changed since somebody read this, each once."""
    begin = read.get(key, 0)
    if begin == len(log):
        return []
    read[key] = len(log)
    return [(place, table[place]) for place in dict.fromkeys(log[begin:])]
