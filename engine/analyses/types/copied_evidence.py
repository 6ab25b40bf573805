"""Copies of memory: what is known of the source is known of the target, at the same distance from the start.

Pointers of a copy may lead to very many objects, most of which hold the same: what all sources know is put together
before any target is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irgrad.engine.analyses.memory.byte_kinds import DECLARED, Kind, Record
from irgrad.engine.analyses.memory.spots import Spots
from irgrad.engine.analyses.memory.strided_sets import Offsets, add
from irgrad.engine.analyses.memory.text_copies import beside_text
from irgrad.engine.analyses.types.records import Records
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.types import Type

_MAX_COPIED = 20_000
_LISTED = 4096  # bytes of a copy that is looked at place by place
_WIDEN_AFTER = 12  # times that a copy has news for its targets

Moved = tuple[int | Offsets, Kind, int, int, bool]
"""(distance from the start of the copy, kind, size, strength, only concluded)."""


class Copy:
    """One memcpy or memmove between objects. A copy whose target is, or becomes, part of its source may have news for
    ever, each time at other places: after some times it tells all places at such distances."""

    __slots__ = ("_heard", "_news", "_seen", "_told", "call", "size", "source", "target", "text")

    def __init__(
        self, call: Instruction, target: Value, source: Value, size: int | None, *, text: bool = False
    ) -> None:
        """text: characters of a string, see `text_copies.py`."""
        self.text = text
        self.call = call
        self.target = target
        self.source = source
        self.size = size
        self._seen: dict[bool, object] = {}
        self._news = 0
        self._heard: dict[tuple[Record, Offsets], tuple[int, tuple[Moved, ...]]] = {}  # by version of the record
        self._told: dict[bool, tuple[Spots, set[Moved]]] = {}  # the targets, and what they were told

    def as_before(self, backwards: bool, state: object) -> bool:
        """Whether all was the same the last time; from now on this is the last time."""
        same = self._seen.get(backwards) == state
        self._seen[backwards] = state
        return same

    def transfer(self, backwards: bool, origins: Spots, goals: Spots, records: Records) -> bool:
        """Tell the goals what the origins know; False where nothing was news."""
        found: dict[Moved, None] = {}
        alike = records.alike(origins)
        for record, origin in [alike] if alike else [(records.of(bit), places) for bit, places in origins.items()]:
            found.update(dict.fromkeys(self._known(record, origin)))
        before, told = self._told.get(backwards, (None, set[Moved]()))
        told = told if before == goals else set()
        self._told[backwards] = goals, told | found.keys()
        together: dict[Offsets, list[Record]] = {}
        for bit, goal in goals.items():
            together.setdefault(goal, []).append(records.of(bit))
        changed = False
        for distance, kind, length, strength, concluded in (item for item in found if item not in told):
            for goal, held in together.items():
                there = _there(goal, distance)
                for one in held:
                    if self._news > _WIDEN_AFTER or (not there.exact and one.crowded(kind, length, strength)):
                        changed |= one.add_all_along(there, kind, length, strength)
                    else:
                        changed |= one.add(there, kind, length, strength, concluded)
        self._news += changed
        return changed

    def _known(self, record: Record, origin: Offsets) -> Iterable[Moved]:
        version, found = self._heard.get((record, origin), (-1, ()))
        if version != record.version:
            whole = self.size is None or self.size > _LISTED
            rows = _behind(record, origin, self.text) if whole else _within(record, origin, self.size or 0)
            found = tuple(rows)
            self._heard[record, origin] = record.version, found
        return found


def _within(record: Record, origin: Offsets, size: int) -> Iterator[Moved]:
    """What is known of so many bytes."""
    for distance, (where, kind, length, strength) in record.near(origin, size):
        if strength == DECLARED or distance < 0 or distance + length > size:
            continue
        if not where.exact and record.contradicts(origin.shift(distance), kind, length, where):
            continue  # an index without bounds claims too many places, which are exact ones in the target
        yield distance, kind, length, strength, False


def _behind(record: Record, origin: Offsets, text: bool) -> Iterator[Moved]:
    """What is known of all that begins there."""
    for item in record.evidence:
        where, kind, length, strength = item
        if strength == DECLARED or len(record) > _MAX_COPIED:
            continue
        if text and isinstance(kind, Type) and beside_text(origin, where, length):
            continue
        relative = Offsets(where.start - origin.start, where.terms, where.below)
        if not origin.exact:
            if where.exact and not origin.below and where.start < origin.start:
                continue
            relative = add(relative, Offsets(0, origin.terms, True))
        if not (relative.exact and relative.start < 0):
            yield relative, kind, length, strength, item in record.concluded


def _there(goal: Offsets, distance: int | Offsets) -> Offsets:
    if isinstance(distance, int):
        return goal.shift(distance)
    there = add(goal, distance)
    if there.below:  # both ways from any of them is the same; where the target begins tells `reach`
        return Offsets(goal.start + distance.start % there.stride, there.terms, True)
    return there
