"""What a byte can be, and the record of what was seen at each place of one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from irgrad.engine.analyses.memory.strided_sets import Offsets, contains, contains_moved, meets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type


class Mark:
    """A kind that is no IR type."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


INT = Mark("integer")
CONFLICT = Mark("conflict")
WORD = Mark("float or pointer")
"""What derivatives call words of shadow memory that hold an adjoint (a double) at one time and a pointer at another."""
Kind = Type | Mark
PTR = ty.PTR

Layout = tuple[tuple[int, Kind], ...]
"""(offset, kind) in order of offset; bytes without an entry are unknown (padding, or never used otherwise)."""

ACCESS, USED, DECLARED = 3, 2, 1
"""Strength: accessed as a float or pointer, or so called by the front end; used in arithmetic; the variable's type."""

_LARGEST = 16
_WORD = 8


def kind_size(kind: Kind) -> int:
    """Bytes of a float or pointer kind; an integer or a conflict is kept byte by byte."""
    return ty.store_size(kind) if isinstance(kind, Type) else 1


def leaves(type_: Type, at: int = 0) -> list[tuple[int, Kind, int]]:
    """(offset, kind, size) of the floats, pointers and integers in a value of this type (arrays: 64 elements)."""
    match type_:
        case ty.FloatType():
            return [(at, type_, ty.store_size(type_))]
        case ty.PtrType():
            return [(at, PTR, 8)]
        case ty.IntType():
            return [(at, INT, ty.store_size(type_))]
        case ty.VectorType(count=count, elem=elem):
            size = ty.store_size(type_) // count or 1
            return [leaf for i in range(min(count, 64)) for leaf in leaves(elem, at + i * size)]
        case ty.ArrayType(count=count, elem=elem):
            size = ty.size_of(elem)
            return [leaf for i in range(min(count, 64)) for leaf in leaves(elem, at + i * size)]
        case ty.StructType(fields=fields):
            found = []
            for field, offset in zip(fields or (), ty.field_offsets(type_) if fields else (), strict=False):
                found += leaves(field, at + offset)
            return found
        case _:
            return []


def told_layout(type_: Type) -> str:
    """The size of a type and where its floats lie, as text: "24 4 float 8 double"; "" where a union is a part of it, or
    it has other parts that nobody can tell."""
    floats = [(at, kind) for at, kind, _ in leaves(type_) if isinstance(kind, ty.FloatType)]
    return "" if _of_unions(type_) else " ".join([str(ty.size_of(type_)), *(f"{at} {kind}" for at, kind in floats)])


def _of_unions(type_: Type) -> bool:
    match type_:
        case ty.ArrayType(count=count, elem=elem):
            return count > 64 or _of_unions(elem)
        case ty.StructType(fields=fields):
            name = type_.name or ""
            return not fields or "union." in name or any(map(_of_unions, fields))
        case _:
            return False


def told_floats(text: str) -> tuple[int, list[tuple[int, str]]]:
    """What such a text says: bytes, and the places and types of the floats."""
    size, *rest = text.split()
    return int(size), [(int(at), kind) for at, kind in zip(rest[::2], rest[1::2], strict=True)]


Evidence = tuple[Offsets, Kind, int, int]
"""(places, kind, size, strength)."""
_Entry = tuple[int, Kind, tuple[int, int], tuple[int, int]]
"""(first byte, kind, how strong and precise, the same of the array that it is a part of)."""


_MOST_CLAIMS = 128  # of one kind, until more that repeat are taken together


class Record:
    """Everything seen in one object. size: its bytes, where they are known."""

    __slots__ = (
        "_accessed", "_by_period", "_cache", "_claimed", "_claims", "_exact", "_listeners", "_lowest", "_nearby",
        "_numbers", "_seen", "_size", "_starts", "_strided", "concluded", "version", "wide",
    )  # fmt: skip

    def __init__(self, size: int | None = None) -> None:
        self._size = size
        self._exact: dict[int, list[Evidence]] = {}
        self._strided: list[Evidence] = []
        self._accessed: list[Evidence] = []  # of those, floats and pointers that were accessed so
        self._seen: dict[Evidence, None] = {}
        self._claimed: dict[tuple[Kind, int, int], list[Offsets]] = {}  # where the same was seen
        self._by_period: dict[int, dict[int, list[Evidence]]] = {}
        self._lowest: dict[object, Evidence] = {}  # of those that differ by multiples of their stride
        self._starts: dict[tuple[int, Kind, int, int], dict[int, int]] = {}
        self._cache: dict[tuple[Offsets, int], Layout] = {}
        self._claims: dict[tuple[Offsets, int], list[tuple[int, Evidence]]] = {}
        self._nearby: dict[tuple[Offsets, int], list[tuple[int, Evidence]]] = {}
        self._listeners: list[Record] = []
        self._numbers: set[int] = set()
        self.wide: dict[Evidence, int] = {}  # a part of an array of which all is seen: the array's stride
        self.concluded: set[Evidence] = set()
        """Arrays of which nothing but the parts was seen: their strides say nothing of the memory around them."""
        self.version = 0

    def heard_by(self, other: Record) -> None:
        """All that is known here is known to another record, of several objects, from now on."""
        self._listeners.append(other)
        for item in self._seen:
            other.add(*item, item in self.concluded)

    def add(self, places: Offsets, kind: Kind, size: int, strength: int, concluded: bool = False) -> bool:
        """Add one piece of evidence; False when it was there, or lies behind the end of the object."""
        if self._size is not None and places.start >= self._size and not places.below:
            return False
        item = (places, kind, size, strength)
        if item not in self._seen:
            item = self._covering(item)
        if item in self._seen:
            if not concluded and item in self.concluded:
                self.concluded.discard(item)
                self.version += 1
                for other in self._listeners:
                    other.add(*item)
            return False
        self._seen[item] = None
        self._claimed.setdefault(item[1:], []).append(places)
        if concluded:
            self.concluded.add(item)
        self.version += 1
        self._cache.clear()
        self._claims.clear()
        self._nearby.clear()
        self._by_period.clear()
        if places.exact:
            self._exact.setdefault(places.start, []).append(item)
        else:
            self._strided.append(item)
            if strength == ACCESS and _plain(item):
                self._accessed.append(item)
        whole = self._dense(places, kind, size, strength)
        if whole is not None:
            for part in self._strided:
                if part[1:] == item[1:] and part[0] != whole and contains(whole, part[0]):
                    self.wide[part] = min(whole.stride, self.wide.get(part, whole.stride))
            self.add(whole, kind, size, strength, concluded=True)
        for other in self._listeners:
            other.add(places, kind, size, strength, concluded)
        return True

    def add_all_along(self, places: Offsets, kind: Kind, size: int, strength: int) -> bool:
        """Add evidence that comes again and again, each time a little further on: a copy inside of the memory hands on
        what it said before. The same is claimed of all places at such distances, both ways, so that it comes to rest:
        every claim that is added has a shorter step than those before it."""
        known = self._claimed.get((kind, size, strength), [])
        if any(contains(other, places) for other in known):
            return False
        step = gcd(*(stride for other in (places, *known) for stride, _ in other.terms),
                   *(other.start - places.start for other in known))  # fmt: skip
        if step:
            places = Offsets(places.start % step, ((step, None),), True)
        return self.add(places, kind, size, strength, concluded=True)

    def crowded(self, kind: Kind, size: int, strength: int) -> bool:
        """Whether the same is claimed of very many places already."""
        return len(self._claimed.get((kind, size, strength), ())) > _MOST_CLAIMS

    def _covering(self, item: Evidence) -> Evidence:
        """What claims the same at the same steps from an earlier start on, if there is any, else the same."""
        places, *rest = item
        if not places.stride:
            return item
        key = (places.start % places.stride, places.terms, places.below, *rest)
        lowest = self._lowest.get(key)
        if lowest is not None and lowest[0].start <= places.start:
            return lowest
        self._lowest[key] = item
        return item

    def _dense(self, places: Offsets, kind: Kind, size: int, strength: int) -> Offsets | None:
        """All elements of an array, if with these places each was seen: by the lanes of vectors, by the copies of an
        unrolled loop. Together they claim what one access with an unknown index claims, and are as precise."""
        stride = places.stride
        if len(places.terms) != 1 or places.below or not size < stride <= 64 * size:
            return None
        starts = self._starts.setdefault((stride, kind, size, strength), {})
        starts[places.start % stride] = min(places.start, starts.get(places.start % stride, places.start))
        for step in (step for step in range(size, stride) if stride % step == 0):
            rows = range(places.start % step, stride, step)
            if all(at in starts for at in rows):
                return Offsets(min(starts[at] for at in rows), ((step, None),))
        return None

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def evidence(self) -> Iterable[Evidence]:
        """All of it, as a view: what is added meanwhile must not be."""
        return self._seen.keys()

    def contradicts(self, places: Offsets, kind: Kind, size: int, claim: Offsets) -> bool:
        """Whether something that is another kind was seen, or declared, at a place that an index without bounds claims;
        or seen there in each struct of an array: those are known apart, the index is not."""
        if places.exact and any(_plain(item) and item[1] is not kind for item in self._exact.get(places.start, ())):
            return True
        step = claim.stride
        return any(
            item[1] is not kind and item[0].stride > step and contains_moved(item[0], places, 1 - item[2], size)
            for item in self._accessed
        )

    def name_number(self, places: Offsets, size: int) -> None:
        """An access calls what is at just one place a member of a struct, which is a number shorter than an address."""
        if places.exact and size < _WORD:
            self._numbers.update(range(places.start, places.start + size))

    def overrules(self, start: int, size: int, claim: Offsets) -> bool:
        """Whether the bytes are integers or pointers although an index that is not bounded claims them for floats: each
        of them was accessed so at just this place; or they lie before the element at which the index is zero, and some
        were; or the source calls some a short member of a struct. Nobody gives an array both names in this way; an
        index that LLVM no longer bounds claims too much."""
        slot = set(range(start, start + size))
        member = bool(slot & self._numbers)
        if claim.exact or (claim.start == start and not (claim.below and member)):
            return False
        named = {at + b for at in range(start - _LARGEST, start + size) for item in self._exact.get(at, ())
                 if item[3] == ACCESS for b in range(item[2])}  # fmt: skip
        floats = any(isinstance(item[1], ty.FloatType) and at + item[2] > start
                     for at in range(start - _LARGEST, start + size) for item in self._exact.get(at, ()))  # fmt: skip
        before = start + size <= claim.start and bool(slot & named)
        return not floats and (slot <= named or before or member)

    def reach(self, places: Offsets) -> Offsets:
        """The places without those below a field that is no float: an array that follows a header does not go back
        into it, whatever the sign of an index is called."""
        step = places.stride
        if not places.below or not step:
            return places
        low = None
        for at, items in self._exact.items():
            for _, kind, size, strength in items:
                if at < places.start and strength == ACCESS and not isinstance(kind, ty.FloatType):
                    behind = places.start - (places.start - at - size) // step * step  # the first element behind it
                    before = behind - step
                    if before < at + size and before + _WORD > at and (low is None or behind > low):
                        low = behind
        return places if low is None or low > places.start else Offsets(low, places.terms)

    def near(self, places: Offsets, size: int) -> list[tuple[int, Evidence]]:
        """(distance, evidence) of all that may touch the `size` bytes at `places`."""
        found = self._nearby.get((places, size))
        if found is None:
            found = self._nearby[places, size] = []
            for item in self._candidates(places, size):
                found += [(d, item) for d in meets(places, item[0], 1 - item[2], size)]
        return found

    def claims(self, places: Offsets, size: int) -> list[tuple[int, Evidence]]:
        """The same, one of those that say the same of the same bytes."""
        found = self._claims.get((places, size))
        if found is None:
            found = self._claims[places, size] = _distinct(self.near(places, size), self.wide)
        return found

    def _candidates(self, places: Offsets, size: int) -> list[Evidence]:
        if places.exact:
            first, last = places.start - _LARGEST, places.start + size
            if size < 4096:
                exact = [e for at in range(first, last) for e in self._exact.get(at, ())]
            else:
                exact = [e for at, items in self._exact.items() if first <= at < last for e in items]
            return exact + self._strided
        period = places.stride
        if period <= 64 or len(self._exact) <= 64:
            return [*(e for items in self._exact.values() for e in items), *self._strided]
        table = self._by_period.get(period)
        if table is None:
            table = self._by_period[period] = {}
            for at, items in self._exact.items():
                table.setdefault(at % period, []).extend(items)
        wanted = {(x + k) % period for x in places.expand() for k in range(-_LARGEST, size)}
        return [e for at in wanted for e in table.get(at, ())] + self._strided

    def layout(self, places: Offsets, size: int) -> Layout:
        """What the `size` bytes at `places` hold."""
        key = (places, size)
        if key not in self._cache:
            self._cache[key] = merge(self.near(places, size), size, self.wide, places.stride)
        return self._cache[key]


def _distinct(found: list[tuple[int, Evidence]], wide: Mapping[Evidence, int]) -> list[tuple[int, Evidence]]:
    """The first of those that say the same of the same bytes, as strongly and as precisely: arrays that begin at many
    places say one thing where they meet."""
    numbers: dict[object, int] = {}
    said: dict[int, int] = {}  # by identity of the evidence, of which each has many distances
    kept: dict[tuple[int, int], tuple[int, Evidence]] = {}
    for hit in found:
        number = said.get(id(hit[1]))
        if number is None:
            places, kind, length, strength = item = hit[1]
            claim = kind, length, strength, places.stride, places.exact, wide.get(item) if wide else None
            number = said[id(item)] = numbers.setdefault(claim, len(numbers))
        kept.setdefault((hit[0], number), hit)
    return list(kept.values())


def merge(found: list[tuple[int, Evidence]], size: int, wide: Mapping[Evidence, int], step: int = 0) -> Layout:
    """Put overlapping evidence together: the strong before the weak, the precise before the wide.

    Evidence whose places lie further apart is the more precise: an index that LLVM no longer bounds claims too many
    places, an exact offset claims one. What is left over must agree byte for byte; floats and pointers stand above
    integers (integer code may do bit tricks on them), different floats or a pointer and a float in one place conflict.
    `wide`: parts of arrays, which are more precise than wider evidence of integers alone, else no more than the array.
    `step`: how far apart the places are that are asked about. Words that may be floats or pointers stay both where what
    is more precise was seen at some of these places alone.
    """
    found = _distinct(found, wide)
    words = _words(found) if step else set()
    ranked = sorted(found, key=lambda f: (
        -f[1][3], _width(f[1][0]), isinstance(f[1][1], Mark), not f[1][0].exact, f[0], -f[1][2]))  # fmt: skip
    taken: dict[int, _Entry] = {}  # by byte
    exact = {distance + b for distance, item in found if item[0].exact and _plain(item) for b in range(item[2])}
    for distance, item in ranked:
        places, kind, length, strength = item
        rank = (-strength, _width(places))
        entry = (distance, kind, rank, (-strength, -wide[item]) if item in wide else rank)
        held = [taken[b] for b in range(distance, distance + length) if b in taken]
        if not places.exact and kind is PTR and any(b in exact for b in range(distance, distance + length)):
            continue  # what is known at just this place is no pointer
        if not held:
            taken.update((b, entry) for b in range(distance, distance + length))
            continue
        if all(h[0] == distance and h[1] is kind for h in held) and len(held) == length:
            continue
        if kind is INT:
            taken.update((b, entry) for b in range(distance, distance + length) if b not in taken)
        elif all(h[1] is INT and rank <= h[3] for h in held):
            taken.update((b, entry) for b in range(distance, distance + length))
        elif any(rank <= h[3] for h in held) or (
            (distance, places.stride) in words and all(-h[2][1] > step for h in held if isinstance(h[1], Type))
        ):
            taken.update((b, (b, CONFLICT, *entry[2:])) for b in range(distance, distance + length))
    return _collect(taken, size)


def _words(found: list[tuple[int, Evidence]]) -> set[tuple[int, int]]:
    """(distance, stride) where a word is called a double and a pointer: either is said of the same places."""
    kinds: dict[tuple[int, int], set[Kind]] = {}
    for distance, (places, kind, _, strength) in found:
        if strength == ACCESS and places.stride and (kind is PTR or kind is ty.F64):
            kinds.setdefault((distance, places.stride), set()).add(kind)
    return {key for key, both in kinds.items() if len(both) > 1}


def _plain(item: Evidence) -> bool:
    """Evidence of a float, of a pointer, or of an integer that is too short for an address."""
    return isinstance(item[1], Type) or (item[2] < ty.store_size(PTR) and item[3] > DECLARED)


def _width(places: Offsets) -> int:
    """Orders evidence by precision: exact offsets first, then large strides, then small ones."""
    stride = places.stride
    return -(1 << 62) if stride == 0 else -stride


def _collect(taken: dict[int, _Entry], size: int) -> Layout:
    out: list[tuple[int, Kind]] = []
    for byte in sorted(taken):
        start, kind, *_ = taken[byte]
        if not 0 <= byte < size:
            continue
        if isinstance(kind, Mark):
            if not (out and out[-1][1] is kind and byte - 1 in taken and taken[byte - 1][1] is kind):
                out.append((byte, kind))
            continue
        whole = start >= 0 and start + kind_size(kind) <= size
        if whole and byte == start:
            out.append((start, kind))
        elif not whole and not (out and out[-1][1] is CONFLICT):
            out.append((byte, CONFLICT))  # part of a float or pointer
    return tuple(out)
