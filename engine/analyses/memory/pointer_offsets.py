"""Where a pointer points within each of the objects that it may point to.

One set of offsets for all objects of a pointer is too coarse for linked structures: a link of a tree or a list leads to
the start of a node, or into the header, and what holds for one of them would be claimed of the other. So the offsets of
a pointer are kept object by object. What memory holds is kept by container, place in it and object pointed to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import Any

from irgrad.engine.analyses.memory import strided_sets as off
from irgrad.engine.analyses.memory.byte_kinds import INT, PTR, Kind, Mark
from irgrad.engine.analyses.memory.due_instructions import DueInstructions
from irgrad.engine.analyses.memory.held_pointers import HeldPointers, Read
from irgrad.engine.analyses.memory.objects import PointsTo, bits_of, pointer_places, same_object
from irgrad.engine.analyses.memory.spots import (
    ANY,
    MOST,
    Place,
    Spots,
    collapsed,
    include,
    join_all,
    moved,
    settled,
    union,
)
from irgrad.engine.analyses.memory.strided_sets import TOP, ZERO, Offsets
from irgrad.engine.analyses.memory.tbaa import STRING_WORD, Tbaa, may_be_read_as, type_tag
from irgrad.engine.analyses.memory.text_copies import beside_text, of_string
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import moved_lanes
from irgrad.engine.ir.model import (
    Argument,
    ConstAggregate,
    ConstExpr,
    Function,
    GlobalAlias,
    GlobalVariable,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import having, of_kind

_WORD = 8  # bytes of a pointer
_LISTED = 4096  # bytes of a copy that is looked at place by place
_AMONG_BYTES = Mark("among bytes")  # what a copy brings to a place that is not known
_MOST_ODD = 8  # places of pointers that are not aligned

PASSES = having("same_number")
_PARTS = of_kind("vector", "aggregate")
_SHUFFLES = of_kind("vector")


class PointerSpots:
    """The state of the analysis; `value_ranges.py` drives it, and knows the integers."""

    def __init__(
        self,
        pointers: PointsTo,
        joined: Callable[[object, Offsets, Offsets], Offsets],
        displacement: Callable[[Sequence[Value], ty.Type, tuple[str, ...]], Offsets | None],
    ) -> None:
        self._pointers = pointers
        self._join = joined  # join with widening, counted by key
        self._displacement = displacement  # how far a getelementptr moves its pointer
        self._state: dict[Value, Spots] = {}
        self._tbaa = Tbaa(pointers.module)
        self._tags: dict[Instruction, Kind | None] = {}
        # what each load and each copy saw: the places, how much was stored there, how much of that was read
        self._loaded: dict[Instruction, tuple[Spots | None, int, Read]] = {}
        self._copied: dict[tuple[Value, Value, int | None], tuple[object, int, Read]] = {}
        self._odd: dict[int, set[Offsets]] = {}  # region -> places that are not aligned to which copies bring pointers
        self._numbers_at: set[tuple[int, int]] = set()  # where the source says that there is an integer
        self._listed: dict[int, dict[int, None]] = {}
        self._returns: dict[Function, Spots] = {}
        self.due = DueInstructions(pointers)
        self.held = HeldPointers(pointers, self.due, self._merge, self.get)
        self.changed = False
        for arg in pointers.root.args:
            self._state[arg] = dict.fromkeys(bits_of(pointers.of(arg)), ZERO)

    def begin(self, coarse: bool) -> None:
        """Another sweep over the program: nothing has changed in it yet."""
        self.changed = False
        self.held.settle_for(coarse)

    def tracked(self, value: Value) -> bool:
        """A value of a function that carries a pointer to some object."""
        return isinstance(value, Instruction | Argument) and bool(self._pointers.of(value))

    def get(self, value: Value) -> Spots | None:
        """What is known of a value so far; None for one not reached yet, nothing for one that carries no pointer."""
        match value:
            case Instruction() | Argument():
                return self._state.get(value) if self._pointers.of(value) else {}
            case GlobalVariable() | Function():
                return dict.fromkeys(bits_of(self._pointers.of(value)), ZERO)
            case GlobalAlias():
                return self.get(value.target)
            case ConstExpr():
                return self._expression(value)
            case ConstAggregate():
                return self._united(list(value.elems))
            case _:
                return {}

    def _expression(self, value: ConstExpr) -> Spots | None:
        if value.opcode == "getelementptr" and value.elem is not None:
            return moved(self.get(value.operands[0]), self._displacement(value.operands, value.elem, value.flags))
        return self.get(value.operands[0]) if value.opcode in PASSES else {ANY: TOP}

    def at(self, value: Value, bit: int) -> Offsets | None:
        """The offsets of a pointer in one object; None when it does not point there after all."""
        spots = self.get(value)
        if not spots:
            return TOP
        found = spots.get(bit) or spots.get(ANY)
        return TOP if found is None and bit == 0 else found

    def known(self, value: Value) -> Spots:
        """The objects that a pointer may point to, and its offsets in each."""
        if self.get(value):
            return dict(self._each(value))
        return dict.fromkeys(self._numbers(self._pointers.of(value)), TOP)

    def _now(self, value: Value) -> Iterator[tuple[int, Offsets]]:
        """(region, offsets) of a pointer as far as they are known: memory that it leads to, as it is kept."""
        spots = self.get(value)
        places = spots.get(ANY) if spots else None
        if places is None:
            yield from self._each(value)
        else:
            for region in self.held.regions(self._pointers.of(value)):
                yield region, places

    def _each(self, value: Value) -> Iterator[tuple[int, Offsets]]:
        """(object, offsets) of a pointer as far as they are known."""
        spots = self.get(value)
        if spots:
            for bit in self._numbers(self._pointers.of(value)):
                places = spots.get(bit) or spots.get(ANY)
                if places is not None or bit == 0:
                    yield bit, places or TOP

    def _numbers(self, mask: int) -> dict[int, None]:
        """The objects of a mask, in order; there are far fewer masks than pointers."""
        found = self._listed.get(mask)
        if found is None:
            found = self._listed[mask] = dict.fromkeys(bits_of(mask))
        return found

    def joined(self, value: Value) -> Offsets | None:
        """The offsets of a pointer in any of its objects; null is at zero."""
        spots = self.get(value)
        return None if spots is None else join_all(spots) if spots else ZERO

    def resume(self) -> bool:
        """What memory holds is not known where nothing was ever stored: True when that is news for some value."""
        found = False
        for fn in self._pointers.functions:
            for instr in fn.instructions():
                if (instr.opcode == "load" or instr.is_call) and self.tracked(instr) and instr not in self._state:
                    self._state[instr] = {ANY: TOP}
                    self.due.value(instr)
                    found = True
        return found

    def give_up(self) -> None:
        """Forget everything: the sweeps did not come to rest."""
        self._state = {value: {ANY: TOP} for value in self._state}

    # -- changes ------------------------------------------------------------------------------------------------------

    def set(self, value: Value, new: Spots | None) -> None:
        """Join new offsets into those of a value."""
        if new is not None and self._merge(self._state, value, new):
            self.due.value(value)

    def _merge(self, table: dict[Any, Spots], key: object, new: Spots, container: int = ANY) -> bool:
        """Whether more is known then."""
        old = table.get(key)
        if old is new or old == new:
            return False
        table[key] = collapsed(new) if old is None else self._grown(old, new, key, container)
        changed = table[key] is not old
        self.changed |= changed
        return changed

    def _grown(self, old: Spots, new: Spots, key: object, container: int) -> Spots:
        if ANY in old or ANY in new or len(old.keys() | new.keys()) > MOST:
            before = join_all(old)
            after = self._join((key, container, ANY), before, join_all(new))
            return old if ANY in old and after == before else {ANY: after}
        result = old
        for bit, places in new.items():
            before_one = old.get(bit)
            after = places if before_one is None else self._join((key, container, bit), before_one, places)
            if after != before_one:
                result = dict(result) if result is old else result
                result[bit] = after
        return result

    # -- instructions -------------------------------------------------------------------------------------------------

    def keep(self, address: Value, spots: Spots | None, access: Instruction) -> None:
        """A pointer is stored at an address; of what a wide value carries, each part in its place."""
        if spots is not None:
            tag, value = self._tag(access), access.operands[0]
            lanes = pointer_places(value.type) if access.opcode == "store" else (0,)
            for at in lanes:
                part = self._part(value, at) if len(lanes) > 1 else spots
                if part is None:
                    continue
                for bit, places in self._now(address):
                    where = self.held.aligned(bit, places, access.align)
                    if where is not None:
                        self.held.keep(bit, (where.shift(at), tag), part)

    def _part(self, value: Value, at: int) -> Spots | None:
        """Where the pointer leads that a wide value carries this many bytes from its start."""
        while isinstance(value, Instruction) and len(pointer_places(value.type)) > 1:
            if value.opcode == "load":
                return self._look_up(value, at, 8)
            if value.opcode in PASSES and ty.store_size(value.type) == ty.store_size(value.operands[0].type):
                value = value.operands[0]
                continue
            moves = moved_lanes(value) if value.opcode in _SHUFFLES else ()
            origin = next(((o, from_, lane, size) for o, from_, _, lane, size in moves if at // size == lane), None)
            if origin is None:
                break
            value, at = origin[0], at + (origin[1] - origin[2]) * origin[3]
        return self.get(value)

    def _tag(self, access: Instruction) -> Kind | None:
        """Whether the source calls an access one of a pointer or of an integer: by C's rules they never overlap."""
        if access not in self._tags:
            tag = access.metadata.get("tbaa")
            kind = self._tbaa.kind(tag) if tag else None
            if kind is None and access.opcode in ("load", "store") and of_string(self._pointers.module, access):
                kind = STRING_WORD
            self._tags[access] = self._tbaa.pointer_kind(tag) if tag and kind is PTR else kind
        return self._tags[access]

    def note_number(self, access: Instruction, address: Value) -> None:
        """The source calls it an integer, at a place that is known."""
        if access.metadata.get("tbaa") and self._tag(access) is INT:
            self._numbers_at.update((bit, where.start) for bit, where in self._now(address) if where.exact)

    def _holds_number(self, load: Instruction, bit: int, where: Offsets) -> bool:
        """An integer of unknown type is read at just the place where elsewhere one is called so: what pointers copies
        bring to places that are not known are others."""
        untold = load.type.is_int and type_tag(load) is None
        return untold and where.exact and (bit, where.start) in self._numbers_at

    def is_number(self, load: Instruction) -> bool:
        """Whether a load reads what is called an integer elsewhere, and where no pointer is known to be."""
        rows = tuple(self._now(load.operands[0]))
        return bool(rows) and all(
            self._holds_number(load, bit, where)
            and not any(
                held and stored_as is not _AMONG_BYTES and off.touches(where, at, 1 - _WORD, _WORD)
                for (at, stored_as), held in self.held.stored(bit)
            )
            for bit, where in rows
        )

    def clear(self, address: Value) -> None:
        """Memory is filled with zeros: the pointers in it are null."""
        for bit, _ in self._now(address):
            self.held.keep(bit, (TOP, None), {})

    def copy(self, target: Value, source: Value, size: int | None, *, text: bool = False) -> None:
        """The contents of memory are copied: what is new since the last time, where the places are what they were.
        text: characters of a string, of which pointers beside them are no part (`text_copies.py`)."""
        sources, targets = tuple(self._now(source)), tuple(self._now(target))
        stores = sum([self.held.version(bit) for bit, _ in sources])
        seen = sources, targets, self.held.coarse
        last, before, read = self._copied.get((target, source, size), (None, -1, {}))
        if last != seen:
            read = {}
        elif before == stores:
            return
        self._copied[target, source, size] = seen, stores, read
        if same_object(target, source) and dict(sources).keys() == dict(targets).keys():
            self._copy_within(dict(targets), sources, size, read, text=text)
            return
        found: dict[Place, Spots] = {}  # by the distance from the start of the copy
        merged: dict[Place, dict[int, Spots]] = {}  # by identity: many objects hold the same
        for origin, start in sources:
            for (places, tag), spots in self.held.stored(origin, read):
                if text and not self.held.alignment(origin) % _WORD and beside_text(start, places, _WORD):
                    continue
                for distance in _distances(start, places, size):
                    once = merged.setdefault((distance, tag), {})
                    if id(spots) in once:
                        continue
                    once[id(spots)] = spots
                    total = found.setdefault((distance, tag), {})
                    for bit, held in spots.items():
                        include(total, bit, held)
        for (distance, tag), spots in found.items():
            new = settled(spots)
            for goal, there in targets:
                where = off.add(there, distance)
                if not self._outside(goal, where):
                    self.held.keep(goal, self._place(goal, where, tag), new)

    def _copy_within(
        self, targets: Spots, sources: Sequence[tuple[int, Offsets]], size: int | None, read: Read, *, text: bool
    ) -> None:
        """The contents of each object are moved in it."""
        for bit, start in sources:
            for (places, tag), spots in tuple(self.held.stored(bit, read)) if bit in targets else ():
                if text and not self.held.alignment(bit) % _WORD and beside_text(start, places, _WORD):
                    continue
                for distance in _distances(start, places, size):
                    where = off.add(targets[bit], distance)
                    if not self._outside(bit, where):
                        self.held.keep(bit, self._place(bit, where, tag), spots)

    def _outside(self, bit: int, where: Offsets) -> bool:
        """A place behind the last one for a pointer in an object of known size."""
        size = self._pointers.objects[bit].size if bit >= 0 else None
        return size is not None and not where.below and where.start > size - _WORD

    def _place(self, region: int, where: Offsets, tag: Kind | None) -> Place:
        """To which place a copy brings a pointer, aligned or not: among bytes it may be anywhere, and what is moved
        again and again is everywhere in the end."""
        inside = off.multiples(where, _WORD)
        known = inside == where
        if inside is None:
            odd = self._odd.setdefault(region, set())
            odd.add(where)
            known = len(odd) <= _MOST_ODD
        return (where, tag) if known else (TOP, _AMONG_BYTES)

    def classes(self, value: Value) -> Spots | None:
        """Where in the objects of a pointer those of classes with virtual functions begin, one inside of another: where
        addresses of tables of such functions are kept."""
        spots: Spots | None = None
        for bit, _ in self._each(value):
            obj = self._pointers.objects[bit]
            places = None if obj.kind in ("alloca", "heap", "global") else TOP
            for (where, _), held in self.held.stored(bit):
                if any(self._is_table(other) for other in held):
                    places = where if places is None else off.join(places, where)
            if places is not None:
                spots = union(spots, {bit: places})
        return spots

    def rounded(self, value: Value, step: int) -> Spots | None:
        """Where a pointer leads when its address is rounded down: that is known in variables that are aligned so."""
        spots = self.get(value)
        if spots is None or ANY in spots:
            return spots and {ANY: TOP}
        anywhere = Offsets(1 - step, ((1, step - 1),))
        out: Spots = {}
        for bit, places in spots.items():
            site = self._pointers.objects[bit].site
            aligned = isinstance(site, Instruction) and site.opcode == "alloca" and site.align % step == 0 < site.align
            out[bit] = places.shift(-(places.start % step)) if aligned and places.exact else off.add(places, anywhere)
        return out

    def _is_table(self, bit: int) -> bool:
        site = self._pointers.objects[bit].site if bit >= 0 else None
        return bit == ANY or (isinstance(site, GlobalVariable) and (site.name or "").startswith(("_ZTV", "_ZTC")))

    def leave(self, fn: Function, value: Value) -> None:
        """A function returns a pointer."""
        spots = self.get(value)
        if spots is not None and self._merge(self._returns, fn, spots):
            self.due.returned(fn)

    def returned(self, fn: Function) -> Spots | None:
        """Where the result of a function may point."""
        return self._returns.get(fn)

    def received(self, actual: Value, formal: Value) -> Spots | None:
        """What an argument hands to a parameter, which may take some of its objects only."""
        spots, mine = self.get(actual), self._pointers.of(formal)
        if not spots or ANY in spots or not self._pointers.of(actual) & ~mine:
            return spots
        return {bit: places for bit, places in spots.items() if mine >> bit & 1}

    def fresh(self, value: Value) -> None:
        """An allocation: its result points to the start of the memory."""
        own = self._pointers.object_of.get(value)
        self.set(value, {own.index: ZERO} if own is not None else {ANY: TOP})

    def transfer(self, instr: Instruction) -> Spots | None:
        """Where the result of an instruction without effects may point (phis, addresses and arithmetic apart)."""
        op = instr.opcode
        if op == "load" or (op == "atomicrmw" and instr.pred == "xchg"):
            return self._load(instr)
        if op in PASSES or op in ("extractvalue", "extractelement"):
            return self.get(instr.operands[0])
        if op == "select":
            return self._united(instr.operands[1:])
        if op in _PARTS:
            return self._united(instr.operands[:2])
        return {ANY: TOP}

    def _united(self, values: list[Value]) -> Spots | None:
        out: Spots | None = None
        for value in values:
            out = union(out, self.get(value))
        return out

    def _load(self, instr: Instruction) -> Spots | None:
        """What is stored where a load may read: what is new since the last time, where the places are what they
        were."""
        address = self.get(instr.operands[0])
        stores = sum([self.held.version(region) for region, _ in self._now(instr.operands[0])])
        last = self._loaded.get(instr)
        read: Read = {}
        if last is not None and (last[0] is address or last[0] == address):
            if last[1] == stores:
                return None
            read = last[2]
        self._loaded[instr] = address, stores, read
        return self._look_up(instr, 0, ty.store_size(instr.type), read)

    def _look_up(self, instr: Instruction, at: int, size: int, read: Read | None = None) -> Spots | None:
        address, wanted = instr.operands[0], self._numbers(self._pointers.of(instr))
        tag = self._tag(instr)
        out: Spots | None = None
        apart = (0, 1) if instr.type.is_ptr else (-_WORD + 1, size)  # half of one pointer and half of another is none
        merged: dict[int, Spots] = {}  # by identity: many objects hold the same
        for bit, start in self._now(address):
            where = self.held.aligned(bit, start, instr.align)
            if where is None:
                continue
            here = where.shift(at)
            precise = self._holds_number(instr, bit, here)
            for (places, stored_as), held in self.held.stored(bit, read):
                if not (tag is None or stored_as in (None, _AMONG_BYTES) or may_be_read_as(tag, stored_as)):
                    continue
                if precise and stored_as is _AMONG_BYTES:
                    continue
                if id(held) not in merged and off.touches(here, places, *apart):
                    merged[id(held)] = held
                    out = {} if out is None else out
                    for other, spots in held.items():
                        if other == ANY or other in wanted:
                            include(out, other, spots)
        return out and settled(out)


def _distances(start: Offsets, places: Offsets, size: int | None) -> list[Offsets]:
    """How far into a copy that begins at `start` the pointers at `places` may be."""
    if places == TOP:
        return [TOP]
    if size is not None and size <= _LISTED:
        return [Offsets(d) for d in off.meets(start, places, 0, size - 7)]
    if start.exact:
        apart = places.shift(-start.start)
        return [] if apart.exact and apart.start < 0 else [apart]
    step = gcd(*(stride for stride, _ in (*start.terms, *places.terms)))
    return [off.make((places.start - start.start) % step, [(step, None)], False)]
