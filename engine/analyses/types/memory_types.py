"""Which bytes of memory, and which integer values, hold which type of float, pointers or integers.

Evidence: accesses of float and pointer type at offsets known up to their strides (`value_ranges.py`), `!tbaa` and
`!tbaa.struct`, the types of variables, the uses of integers. Integer values that only travel (load, phi, select, store)
carry what their memory holds, and tell other memory about it: both are solved together in rounds, like memory that
`memcpy` joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import gcd

from irgrad.engine.analyses.memory.byte_kinds import (
    ACCESS,
    CONFLICT,
    DECLARED,
    INT,
    PTR,
    USED,
    WORD,
    Kind,
    Layout,
    Record,
    kind_size,
    leaves,
    told_floats,
)
from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.objects import Object, holds_nothing, said_alignment
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.spots import Spots
from irgrad.engine.analyses.memory.strided_sets import Offsets, add, meets, off_end, touches
from irgrad.engine.analyses.memory.tbaa import Tbaa, type_tag
from irgrad.engine.analyses.memory.text_copies import copies_text, hashes_text, only_beside
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.analyses.types.carriers import Carriers
from irgrad.engine.analyses.types.contents import Contents
from irgrad.engine.analyses.types.copied_evidence import Copy
from irgrad.engine.analyses.types.named_numbers import NamedNumbers
from irgrad.engine.analyses.types.pointer_reads import keeping_pointers
from irgrad.engine.analyses.types.records import Pattern, Records, only_integers, shortest
from irgrad.engine.analyses.types.seen_beside import see_beside
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, GlobalVariable, Instruction, Value
from irgrad.engine.ir.types import Type

FLOATS: dict[str, Type] = {str(t): t for t in (ty.HALF, ty.BFLOAT, ty.F32, ty.F64, ty.F80)}
_MOST_TAGGED = 256
_LISTED = 4096  # bytes of an access that is looked at place by place


class MemoryTypes:
    """Types of the memory and of the integers of everything reachable from the root of `pointers`."""

    def __init__(self, pointers: Pointers, buffers: Sequence[str] = ()) -> None:
        self.pointers = pointers
        self.ranges = pointers.kept(Ranges)
        self._tbaa = Tbaa(pointers.module)
        self._records = Records(pointers.objects)
        self._told: set[tuple[Value, int, Kind, int, int, int, bool]] = set()
        self._copies: list[Copy] = []
        # what was asked before of memory of unknown length: the versions then, the answer
        self._patterns: dict[tuple[tuple[int, Offsets], ...], tuple[int, Pattern]] = {}
        self._first: dict[tuple[int, Kind], Instruction] = {}  # (object, kind) -> an access
        self._called_integers: list[tuple[Instruction, Value, int, int]] = []  # accesses of what is called an integer
        self._filled = 0  # objects that hold more than stores of the module put there, as a mask
        self._plain = 0  # code and constant texts, which hold neither floats nor pointers
        for obj in pointers.objects:
            self._plain |= holds_nothing(obj) << obj.index
            self._filled |= (obj.kind not in ("alloca", "heap") or pointers.escaped(obj)) << obj.index
            self._declare(obj)
        self._tagged: dict[int, dict[tuple[Offsets, int], set[str]]] = {}  # object -> (places, bytes) -> type tags
        self.numbers = NamedNumbers(self._tbaa, self.ranges)
        self.carriers = Carriers(pointers)
        self.described = 0  # objects of structs of which the caller says where their floats lie, as a mask
        self.buffers: dict[int, int] = {}  # objects that hold floats all over, by the signature: their size
        for arg, name in zip(pointers.root.args, buffers, strict=False):
            if name in FLOATS and arg in pointers.object_of:
                size = self.buffers[pointers.object_of[arg].index] = ty.store_size(FLOATS[name])
                record = self.record(pointers.object_of[arg].index)
                record.add(Offsets(0, ((size, None),)), FLOATS[name], size, ACCESS)
            elif name[:1].isdigit() and arg in pointers.object_of:
                size, floats = told_floats(name)
                self.described |= 1 << pointers.object_of[arg].index
                for at, kind in floats:
                    record = self.record(pointers.object_of[arg].index)
                    record.add(Offsets(at, ((size, None),)), FLOATS[kind], kind_size(FLOATS[kind]), ACCESS)
        for fn in pointers.functions:
            for instr in fn.instructions():
                self._collect(instr)
        for copy in self._copies:
            if not self._floats_alone(copy.source):
                self._filled |= pointers.of(copy.target)
            self.numbers.unnamed(copy.target, copy.size)
        see_beside(pointers, self._tbaa, self._records, self._copies, self._tagged)
        for instr, pointer, at, size in self._called_integers:
            self._integer(instr, pointer, at, size)
        for value, pointer, _ in self.carriers.accesses:
            size = ty.store_size(value.type)
            if self.carriers.counts(value) and self._one_place(pointer) and not self._floats_seen(pointer, size):
                self._see(pointer, 0, INT, size, ACCESS)
        self._solve()

    # -- what the others ask ------------------------------------------------------------------------------------------

    def access(self, pointer: Value, size: int) -> Layout:
        """What the `size` bytes at `pointer` hold, as ((offset, kind), ...)."""
        return self._records.layout(self._places(pointer), size)

    def uses(self, pointer: Value) -> dict[Kind, Instruction]:
        """As what the memory behind a pointer is used anywhere, and where it is."""
        objects = self.ranges.places(pointer)
        return {kind: instr for (bit, kind), instr in self._first.items() if bit in objects}

    def tag_backwards(self, access: Instruction) -> str | None:
        """The type tag of a load or store, where all accesses of the same bytes have it. Memory that is used for one
        type after another may be read as a type only behind a store of that type, and a sweep that runs backwards does
        it the other way round."""
        tag, pointer = access.metadata.get("tbaa"), access.operands[access.opcode == "store"]
        size = ty.store_size(access.operands[0].type if access.opcode == "store" else access.type)
        for bit, places in self._places(pointer).items() if tag else ():
            rows = self._tagged.get(bit, {})
            if len(rows) > _MOST_TAGGED or any(
                tags != {tag} and touches(places, where, 1 - length, size) for (where, length), tags in rows.items()
            ):
                return None
        return tag

    def _places(self, pointer: Value) -> Spots:
        """Where a pointer leads to, as far as fields of other kinds let it."""
        spots = self.ranges.places(pointer)
        if self._records.alike(spots) or not any(places.below for places in spots.values()):
            return spots
        return {bit: self.record(bit).reach(places) for bit, places in spots.items()}

    def _aligned(self, pointer: Value, align: int) -> Spots:
        """The same, of a pointer that is said to have an alignment where it is used."""
        held, spots = self.ranges.spots.held, self._places(pointer)
        known = {bit: held.aligned(bit, places, align) for bit, places in spots.items() if not self._plain >> bit & 1}
        return {bit: fit for bit, fit in known.items() if fit is not None}

    def nothing_but_integers(self, pointer: Value, type_: Type) -> bool:
        """Whether an access of floats finds, wherever in its objects it may be, that others say there are integers."""
        spots = self.ranges.places(pointer)
        return bool(spots) and any(
            all(only_integers(self.record(bit), places.shift(at), size) for bit, places in spots.items())
            for at, _, size in leaves(type_)
        )

    def region(self, pointer: Value, *, text: bool = False, align: int = 1) -> Pattern:
        """The repeating layout of memory of unknown length at `pointer`. text: of characters; align: of the address"""
        return self._region(self.texts(pointer) if text else self._aligned(pointer, align))

    def texts(self, pointer: Value) -> Spots:
        """Where a pointer to characters leads to, but for objects that have nothing else than members beside them."""
        spots = self._places(pointer).items()
        return {bit: places for bit, places in spots if not only_beside(places, self.record(bit).evidence)}

    def _region(self, spots: Spots) -> Pattern:
        key, versions = tuple(spots.items()), self._records.versions(spots)
        last = self._patterns.get(key)
        if last is None or last[0] != versions:
            last = self._patterns[key] = versions, self._repeating(spots)
        return last[1]

    def _repeating(self, spots: Spots) -> Pattern:
        period = 0
        for bit, places in spots.items():
            period = gcd(period, places.stride)
            record = self.record(bit)
            for item in record.evidence:
                where, kind, _, strength = item
                if item not in record.concluded and (strength != DECLARED or kind is not INT):
                    period = gcd(period, where.stride)
        if period == 0:
            period = self._longest(spots)
        if period == 0 or period > 65536:
            return Pattern(0, ())
        widest = period
        for bit in spots:  # one float alone says nothing of a period shorter than itself
            widest = max([widest, *(e[2] for e in self.record(bit).evidence)])
        period = -(-widest // period) * period
        repeat = Offsets(0, ((period, None),))
        rows = {bit: add(places, repeat) for bit, places in spots.items()}
        return shortest(period, self._records.repeated(rows, period))

    def object_layout(self, obj: Object) -> Pattern | Layout:
        """What a whole object holds: its fields when it is one small record, else the pattern that repeats."""
        size, fields = self.small_record(obj)
        if size:
            repeated = shortest(size, fields)
            return repeated if repeated.period < size else fields
        return self._region({obj.index: Offsets(0)})

    def small_record(self, obj: Object) -> tuple[int, Layout]:
        """Bytes and fields of an object that is one small record; no bytes where it is not."""
        evidence = tuple(self.record(obj.index).evidence)
        size = max([1, *(off_end(where) + length for where, _, length, _ in evidence)])
        if size > 256 or any(where.stride for where, *_ in evidence):
            return 0, ()
        return size, self._records.layout({obj.index: Offsets(0)}, size)

    def carries(self, value: Value) -> Kind | Layout | None:
        """What an integer (or a vector of them) carries: a float type, PTR, INT, a layout for packed values, None."""
        layout = self.carriers.layout(value)
        if not layout:
            return INT if self.carriers.used_as_integer(value) else None
        size = ty.store_size(value.type)
        at, kind = layout[0]
        if len(layout) == 1 and at == 0 and (kind_size(kind) == size or not isinstance(kind, Type)):
            return kind
        kinds = {kind for _, kind in layout}
        return INT if kinds == {INT} else layout

    @cached_property
    def contents(self) -> Contents:
        """What is written into each object."""
        return Contents(self.pointers)

    def record(self, bit: int) -> Record:
        """Everything known of one object."""
        return self._records.of(bit)

    def holds(self, obj: Object) -> frozenset[Kind]:
        """Every kind seen anywhere in an object."""
        evidence = self.record(obj.index).evidence
        return frozenset(kind for _, kind, _, strength in evidence if strength != DECLARED or kind is not INT)

    def may_hold_floats(self, obj: Object) -> bool:
        """Some byte of the object was seen as a float, or nothing at all was seen of it."""
        kinds = self.holds(obj)
        return not kinds or any(k is not INT and k is not ty.PTR for k in kinds)

    def floats_at(self, pointer: Value, size: int) -> set[Type]:
        """The types of the floats that lie whole in the `size` bytes at a pointer."""
        found: set[Type] = set()
        for bit, places in self.ranges.places(pointer).items():
            for where, kind, length, strength in self.record(bit).evidence:
                if strength == ACCESS and isinstance(kind, ty.FloatType) and kind not in found and (
                    touches(places, where, 1 - length, size) if size > _LISTED
                    else any(at % length == 0 for at in meets(places, where, 1 - length, size))
                ):  # fmt: skip
                    found.add(kind)
        return found

    def ended(self, pointer: Value, size: int) -> Layout:
        """Which floats a store of an integer of `size` bytes may put an end to: those that the place holds, and where
        it holds integers for all that is known precisely, those that an index without bounds would reach."""
        layout = self.access(pointer, size)
        floats = () if any(kind is not INT for _, kind in layout) else self.floats_at(pointer, size)
        near = (item for bit, places in self.ranges.places(pointer).items()
                for _, item in self.record(bit).near(places, size))  # fmt: skip
        if not floats or any(item[1] is PTR for item in near):
            return layout
        kind = min(floats, key=kind_size)
        return tuple((at, kind) for at in range(0, size - kind_size(kind) + 1, kind_size(kind)))

    # -- evidence -----------------------------------------------------------------------------------------------------

    def _declare(self, obj: Object) -> None:
        site = obj.site
        declared: Type | None = None
        if obj.kind == "alloca" and isinstance(site, Instruction):
            declared = site.elem
        elif isinstance(site, GlobalVariable) and obj.kind == "global":
            declared = site.value_type
        if declared is None or (isinstance(declared, ty.StructType) and declared.fields is None):
            return
        repeat = Offsets(0)
        if obj.size is None:
            repeat = Offsets(0, ((ty.size_of(declared), None),))
        self._declared(obj.index, declared, repeat)

    def _declared(self, bit: int, type_: Type, places: Offsets) -> None:
        if isinstance(type_, ty.ArrayType):
            if type_.count > 0:
                each = Offsets(0, ((ty.size_of(type_.elem), type_.count - 1),) if type_.count > 1 else ())
                self._declared(bit, type_.elem, add(places, each))
        elif isinstance(type_, ty.StructType):
            for field, at in zip(type_.fields or (), ty.field_offsets(type_), strict=False):
                self._declared(bit, field, places.shift(at))
        elif type_ is not ty.I8:  # bytes are declared to hold anything
            for at, kind, size in leaves(type_):
                self.record(bit).add(places.shift(at), kind, size, DECLARED)

    def _collect(self, instr: Instruction) -> None:
        op = instr.opcode
        if op == "load" and not hashes_text(self.pointers.module, instr):
            self._access(instr, instr.operands[0], instr, instr.type)
        elif op == "store":
            self._access(instr, instr.operands[1], instr.operands[0], instr.operands[0].type)
        elif op == "atomicrmw":
            self._access(instr, instr.operands[0], instr.operands[1], instr.operands[1].type)
        elif op == "cmpxchg":
            self._access(instr, instr.operands[0], instr.operands[2], instr.operands[2].type)
        elif instr.is_call:
            self._call(instr)
        self.carriers.visit(instr)

    def _access(self, instr: Instruction, pointer: Value, value: Value, type_: Type) -> None:
        tag = type_tag(instr)
        named = self._tbaa.kind(tag) if tag else None
        for bit, places in self.ranges.places(pointer).items() if tag else ():
            self._tagged.setdefault(bit, {}).setdefault((places, ty.store_size(type_)), set()).add(tag or "")
        if tag and self._tbaa.is_vtable(tag) and not all(p.exact for p in self.ranges.places(pointer).values()):
            return  # a call through a pointer to a member asks any object, at any offset, in case it is virtual
        if named is WORD:
            for one in (ty.F64, PTR):
                self._see(pointer, 0, one, 8, ACCESS)
                self.carriers.learn_if(value, ((0, one),))
        if instr.opcode == "store" and named is None:
            self.numbers.unnamed(pointer, ty.store_size(type_))
        for at, seen, size in leaves(type_):
            kind: Kind = seen
            if kind is INT:
                if named is None or named is WORD or (isinstance(named, Type) and kind_size(named) != size):
                    continue
                kind = named
            if kind is INT:
                self._called_integers.append((instr, pointer, at, size))
                for bit, places in self.ranges.places(pointer).items() if self._tbaa.floats_beside(tag or "") else ():
                    self.record(bit).name_number(places.shift(at), size)
            elif self._see(pointer, at, kind, size, ACCESS, instr.align, read=kind is PTR and instr.opcode == "load"):
                for bit in self.ranges.places(pointer):
                    self._first.setdefault((bit, kind), instr)
        if type_.scalar.is_int:
            if isinstance(named, Type) and kind_size(named) == ty.store_size(type_):
                self.carriers.learn_if(value, ((0, named),))
            self.carriers.memory(value, pointer, instr if named is INT else None)
            if instr.opcode == "store":
                self.numbers.stored(instr)

    def _integer(self, instr: Instruction, pointer: Value, at: int, size: int) -> None:
        """What the source calls an integer and computes with is one, unless it lies in uninitialised memory where no
        integer is ever stored: then it is the bits of a float. What only moves a word may move any float there."""
        places = self.ranges.places(pointer)
        if self.numbers.moves(instr) and any(isinstance(kind, ty.FloatType) and length <= size
                                             for bit in places for _, kind, length, _ in self.record(bit).evidence):
            return
        given = self._tbaa.is_member(instr.metadata.get("tbaa", "")) or any(
            (self._filled >> bit & 1 or self.numbers.given(bit, p.shift(at), size))
            and self.numbers.believed(bit, p.shift(at), size)
            for bit, p in places.items()
        )
        if self._see(pointer, at, INT, size, ACCESS if given else USED, instr.align):
            for bit in places:
                self._first.setdefault((bit, INT), instr)

    def _floats_seen(self, pointer: Value, size: int) -> bool:
        """Whether a float was seen at just the place of an access."""
        return any(item[0].exact and isinstance(item[1], ty.FloatType) for bit, places in self._places(pointer).items()
                   for _, item in self.record(bit).near(places, size))  # fmt: skip

    def _see(
        self, pointer: Value, at: int, kind: Kind, size: int, strength: int, align: int = 0, *, read: bool = False
    ) -> bool:
        key = (pointer, at, kind, size, strength, align, read)
        if key in self._told:
            return False
        self._told.add(key)
        changed, spots = False, self.ranges.places(pointer)
        for bit, anywhere in (keeping_pointers(self.pointers, spots) if read else spots).items():
            places = None if self._plain >> bit & 1 else self.ranges.spots.held.aligned(bit, anywhere, align)
            if places is not None and not self.ranges.outside(bit, places.shift(at), size):
                changed |= self.record(bit).add(places.shift(at), kind, size, strength)
        return changed

    def _call(self, call: Instruction) -> None:
        effect = self.pointers.effect(call)
        if effect is None:
            return
        self._filled |= self._written(call, effect)
        if effect.copy is not None:
            target, source, length = (call.args[i] for i in effect.copy)
            size = length.value if isinstance(length, ConstInt) else None
            text = copies_text(self.pointers.module, call, effect.copy[2])
            self._copies.append(Copy(call, target, source, size, text=text))
            tag = call.metadata.get("tbaa.struct")
            for at, width, kind in self._tbaa.fields(tag) if tag else ():
                self._field(target, at, width, kind)
                self._field(source, at, width, kind)
        elif effect.moves is not None:
            self._copies.append(Copy(call, call, call.args[effect.moves], None))
        elif self.pointers.module.rules is not None:
            self._stated(call)

    def _floats_alone(self, pointer: Value) -> bool:
        """Whether nothing but floats is known of the memory behind a pointer."""
        seen = [kind for bit in self.ranges.places(pointer)
                for _, kind, _, strength in self.record(bit).evidence if strength != DECLARED]  # fmt: skip
        return bool(seen) and all(isinstance(kind, ty.FloatType) for kind in seen)

    def _written(self, call: Instruction, effect: Effect) -> int:
        """The objects that a call without body fills with more than it copies from others."""
        if effect.copy is not None:
            return 0
        if effect.fill is not None:
            return self.pointers.of(call.args[0])
        if effect.moves is not None or effect.zeroed:
            return self.pointers.of(call)
        if effect.inactive or effect.nothing or effect.allocates or effect.frees is not None:
            return 0
        from irgrad.engine.analyses.memory.modref import own_reads_writes

        return own_reads_writes(self.pointers, call)[1]

    def _stated(self, call: Instruction) -> None:
        """What prototypes and rules of the user say about the elements behind pointers."""
        kinds = self.pointers.module.rules.elements(call)
        for pointer, kind in zip(call.args, kinds, strict=False):
            if kind is None:
                continue
            size = kind_size(kind)
            for bit, places in self.ranges.places(pointer).items():
                self.record(bit).add(add(places, Offsets(0, ((size, None),))), kind, size, ACCESS)

    def _field(self, pointer: Value, at: int, width: int, kind: Kind | None) -> None:
        if kind is None:
            return
        step = kind_size(kind) if isinstance(kind, Type) else width
        for offset in range(at, at + width - step + 1, step) if width <= 64 * step else (at,):
            self._see(pointer, offset, kind, step, ACCESS)

    # -- rounds -------------------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        """All that is known only grows, and comes to rest: a value has so many bytes, and copies widen their news."""
        self.carriers.settle()
        changed = True
        while changed:
            changed = False
            for value, pointer, named in self.carriers.accesses:
                size = ty.store_size(value.type)
                seen = self.access(pointer, size)
                if named is not None and not self.numbers.moves(named):
                    seen = ((0, INT),) if self.numbers.are(named) else self._number(pointer, seen)
                if any(kind is CONFLICT for _, kind in seen) and not self.carriers.used_as_integer(value):
                    for kind in self.floats_at(pointer, size):
                        self.carriers.may_be(value, kind)
                changed |= self.carriers.learn(value, tuple(e for e in seen if e[1] is not INT or len(seen) == 1))
            changed |= self.carriers.propagate()
            for value, pointer, _ in self.carriers.accesses:
                changed |= self._teach(value, pointer)
            for copy in self._copies:
                changed |= self._transfer(copy, backwards=False)
                changed |= self._transfer(copy, backwards=True)

    def _number(self, pointer: Value, seen: Layout) -> Layout:
        """What an access that the source calls an integer finds where it may be another place as well: the pointers,
        and what is something else beside them, are those of a neighbour."""
        if self._one_place(pointer):
            return seen
        beside = any(kind is CONFLICT for _, kind in seen) and any(
            item[1] is PTR for bit, places in self.ranges.places(pointer).items()
            for _, item in self.record(bit).near(places, 1)
        )  # fmt: skip
        return tuple((at, INT if kind is PTR or (kind is CONFLICT and beside) else kind) for at, kind in seen)

    def _one_place(self, pointer: Value) -> bool:
        """Where in its objects a pointer leads to is known."""
        return all(places.exact for places in self.ranges.places(pointer).values())

    def _teach(self, value: Value, pointer: Value) -> bool:
        """Memory holds what the integer that is loaded from it or stored to it carries."""
        changed = False
        for at, kind in self.carriers.layout(value):
            both = kind is CONFLICT and self.carriers.either(value, at)
            kinds = [*self.carriers.floats(value), PTR] if both else [kind]
            for one in kinds:
                if isinstance(one, Type):
                    changed |= self._see(pointer, at, one, kind_size(one), ACCESS)
        if not self.carriers.layout(value) and self.carriers.used_as_integer(value):
            changed |= self._see(pointer, 0, INT, ty.store_size(value.type), USED)
        return changed

    def _transfer(self, copy: Copy, backwards: bool) -> bool:
        """What is known of the source of a copy is known of its target."""
        source, target = (copy.target, copy.source) if backwards else (copy.source, copy.target)
        origins, goals = (self._aligned(end, said_alignment(copy.call, end)) for end in (source, target))
        known = copy.as_before(backwards, (origins, goals, self._records.versions(origins)))
        return not known and copy.transfer(backwards, origins, goals, self._records)

    def _longest(self, objects: Iterable[int]) -> int:
        """The extent of exact evidence, when nothing repeats: the whole object is one record."""
        ends = [off_end(where) + length for bit in objects for where, _, length, _ in self.record(bit).evidence]
        sizes = [self.pointers.objects[b].size for b in objects]
        return max([0, *ends, *(s for s in sizes if s is not None and s <= 65536)])
