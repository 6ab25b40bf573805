"""What was seen in each object, and in many objects together.

A pointer that may lead to very many objects is asked about all of them at once: such objects have one record more, of
what any of them knows, which is kept as theirs grow. Where there are very many such sets, one of all objects takes
their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, Evidence, Kind, Layout, Record, kind_size, merge
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.spots import MOST, Spots
from irgrad.engine.analyses.memory.strided_sets import Offsets, off_end
from irgrad.engine.ir.types import Type

_MAX_PERIOD = 4096
_MOST_SETS = 96


class Pattern:
    """Memory of unknown length: `fields` ((offset, kind), ...) repeat every `period` bytes (0: nothing known)."""

    __slots__ = ("fields", "period")

    def __init__(self, period: int, fields: Layout) -> None:
        self.period = period
        self.fields = fields

    def __repr__(self) -> str:
        inner = ", ".join(f"{at}: {kind}" for at, kind in self.fields)
        return f"[{inner}] every {self.period} bytes"

    @property
    def uniform(self) -> Kind | None:
        """The single kind that fills the period without gaps, if there is one."""
        kinds = {kind for _, kind in self.fields}
        if len(kinds) != 1:
            return None
        (kind,) = kinds
        full = isinstance(kind, Type) and len(self.fields) * kind_size(kind) == self.period
        return kind if full or kind is INT else None


def shortest(period: int, fields: Layout) -> Pattern:
    """The same memory with the shortest period that gives it."""
    for length in sorted({at for at, _ in fields[1 : 1 + 64]}):
        first = tuple(f for f in fields if f[0] < length)
        if length and period % length == 0 and len(first) * (period // length) == len(fields):
            whole = tuple((at + k * length, kind) for k in range(period // length) for at, kind in first)
            if whole == fields:
                return Pattern(length, first)
    return Pattern(period, fields)


class Records:
    """The records of the objects of a program, by number."""

    def __init__(self, objects: Sequence[Object] = ()) -> None:
        self._objects = objects
        self._of: dict[int, Record] = {}
        self._together: dict[frozenset[int], Record] = {}
        self._all: Record | None = None
        self._alike: dict[int, tuple[Spots, tuple[Record, Offsets] | None]] = {}  # by identity of the spots
        # what was asked before of several objects: the versions then, the answer
        self._layouts: dict[tuple[tuple[tuple[int, Offsets], ...], int], tuple[int, Layout]] = {}

    def of(self, bit: int) -> Record:
        """Everything known of one object."""
        found = self._of.get(bit)
        if found is None:
            obj = self._objects[bit] if bit < len(self._objects) else None
            own = obj is not None and obj.kind in ("alloca", "heap")  # a variable may be larger where it is defined
            found = self._of[bit] = Record(obj.size if obj is not None and own else None)
            if self._all is not None:
                found.heard_by(self._all)
        return found

    def alike(self, spots: Spots) -> tuple[Record, Offsets] | None:
        """One record, and the places in it, for a pointer to very many objects that is at the same places in each."""
        if len(spots) <= MOST:
            return None
        known = self._alike.get(id(spots))
        if known is None or known[0] is not spots:
            places = next(iter(spots.values()))
            same = all(other is places or other == places for other in spots.values())
            known = self._alike[id(spots)] = spots, (self._record(frozenset(spots)), places) if same else None
        return known[1]

    def _record(self, objects: frozenset[int]) -> Record:
        found = self._together.get(objects)
        if found is None and len(self._together) < _MOST_SETS:
            found = self._together[objects] = Record()
            for bit in sorted(objects):
                self.of(bit).heard_by(found)
        if found is None:
            if self._all is None:
                self._all = Record()
                for record in self._of.values():
                    record.heard_by(self._all)
            found = self._all
        return found

    def layout(self, spots: Spots, size: int) -> Layout:
        """One layout for several objects: what any of them knows, conflicts where two differ."""
        alike = self.alike(spots)
        if alike is not None:
            return alike[0].layout(alike[1], size)
        known = [bit for bit in spots if bit in self._of]
        if len(known) == 1:
            return self._of[known[0]].layout(spots[known[0]], size)
        key, versions = (tuple(spots.items()), size), self.versions(known)
        last = self._layouts.get(key)
        if last is None or last[0] != versions:
            found = [hit for bit in known for hit in self._of[bit].claims(spots[bit], size)]
            wide: dict[Evidence, int] = {}
            for bit in reversed(known):
                wide |= self._of[bit].wide
            last = self._layouts[key] = versions, merge(found, size, wide)
        return last[1]

    def repeated(self, rows: Spots, period: int) -> Layout:
        """The layout of memory that repeats from somewhere on: what lies at just one place, in a header before it, does
        not say what lies at that distance in each period."""
        fields = dict(self.layout(rows, period))
        hits = dict.fromkeys(hit for bit in rows for hit in self.of(bit).near(rows[bit], period))
        wide: dict[Evidence, int] = {}
        for bit in rows:
            wide |= self.of(bit).wide
        for at, kind in merge([hit for hit in hits if not hit[1][0].exact], period, wide):
            once = fields.get(at, INT)
            if isinstance(kind, Type) and once is not kind:
                fields[at] = kind if once is INT else CONFLICT
        return tuple(sorted(fields.items(), key=lambda field: field[0]))

    def versions(self, spots: Spots | Iterable[int]) -> int:
        """Another number whenever more is known of one of the objects: their versions only grow."""
        alike = self.alike(spots) if isinstance(spots, dict) else None
        if alike is not None:
            return alike[0].version
        return sum([self._of[bit].version for bit in spots if bit in self._of])


def only_integers(record: Record, places: Offsets, size: int) -> bool:
    """Whether integers alone were seen in so many bytes of an object, wherever among these places they are."""
    if not any(kind is INT for _, kind in record.layout(places, size)):
        return False
    seen = {(item[0], item[2]) for _, item in record.near(places, size) if item[1] is INT}
    period = lcm(*(where.stride for where in (places, *(where for where, _ in seen)) if where.stride))
    if not places.stride or not 0 < period <= _MAX_PERIOD:
        return places.exact
    last = max((off_end(where) + length for where, length in seen if not where.stride), default=0)
    behind = (start + period * (1 + max(last - start, 0) // period) for start in places.expand())
    rows = (Offsets(k, ((period, None),)) for first in behind for k in range(first, first + period, places.stride))
    return all(record.layout(row, size)[:1] == ((0, INT),) for row in rows)
