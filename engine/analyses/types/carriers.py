"""Integers that carry floats or pointers: values that are loaded, handed on and stored, or cast, without arithmetic.

Values that hold the same bits (phi, select, freeze, arguments, returns) form one class (union-find). A class has a
layout, ((offset, kind), ...); truncations, extensions, shifts by whole bytes and disjoint `or` pass parts of it on.
Integers in structs (`std::optional<double>` is returned as `{ i64, i8 }`) are values of their own, `Part`s.
"""

from __future__ import annotations

from functools import cached_property

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, Kind, Layout, kind_size, leaves
from irgrad.engine.analyses.memory.objects import reads_bits_of_address
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import moved_lanes
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE, CASTS, CHOICES, INT_BINARY, having, of_kind
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.runtime.word_sums import WORD_SUM

_ARITHMETIC = having("number_to_number")
_PARTS = having("places_bytes")
_VECTOR = of_kind("vector")


_STEPS = (having("affine") & INT_BINARY) - BITWISE | CASTS
_HANDS_ON = CHOICES | {"extractvalue", "insertvalue"}
_MOST_PARTS = 64


class Part(Value):
    """An integer in a struct or array."""

    __slots__ = ("whole",)

    def __init__(self, type_: Type, whole: Value) -> None:
        super().__init__(type_)
        self.whole = whole


def _tracked(value: Value) -> bool:
    wide = value.type.scalar.is_int and ty.store_size(value.type) >= 2
    return wide and isinstance(value, Instruction | Argument | Part)


def integers_in(type_: Type) -> list[tuple[tuple[int, ...], Type]]:
    """(path, type) of the integers in a struct or array that may carry floats; none where they are too many."""
    if isinstance(type_, ty.StructType):
        fields = list(enumerate(type_.fields or ()))
    elif isinstance(type_, ty.ArrayType):
        fields = [(i, type_.elem) for i in range(type_.count if type_.count <= _MOST_PARTS else 0)]
    else:
        return [((), type_)] if type_.scalar.is_int and ty.store_size(type_) >= 2 else []
    found = [((i, *path), leaf) for i, field in fields for path, leaf in integers_in(field)]
    return found if len(found) <= _MOST_PARTS else []


class Carriers:
    """Classes of integers and what they carry."""

    def __init__(self, pointers: Pointers) -> None:
        self._pointers = pointers
        self._parent: dict[Value, Value] = {}
        self._layout: dict[Value, dict[int, Kind]] = {}
        self._floats: dict[Value, set[Type]] = {}
        self._integer: set[Value] = set()
        self._subscripts: dict[Value, None] = {}
        self._compared: list[tuple[Value, Value]] = []
        self._counters: set[Value] = set()
        self._said: dict[Value, set[tuple[int, Kind]]] = {}
        self._either: set[tuple[Value, int]] = set()
        self._parts: list[Instruction] = []
        self._returns: dict[Function, Value] = {}
        self._users: dict[Function, Uses] = {}
        self._in_structs: dict[tuple[Value, tuple[int, ...]], Part] = {}
        self.accesses: list[tuple[Value, Value, Instruction | None]] = []  # (integer, address of an access, `named`)

    def find(self, value: Value) -> Value:
        """The representative of a value's class."""
        root = value
        while (up := self._parent.get(root)) is not None:
            root = up
        while value is not root:
            following = self._parent[value]
            self._parent[value] = root
            value = following
        return root

    def layout(self, value: Value) -> Layout:
        """What the value carries; empty when that is not known."""
        return tuple(sorted(self._layout.get(self.find(value), {}).items(), key=lambda e: e[0]))

    def floats(self, value: Value) -> frozenset[Type]:
        """The float types of everything the value is known to carry; several of them for a union."""
        if value.type.is_aggregate:
            parts = (self._part(value, path, leaf) for path, leaf in integers_in(value.type))
            return frozenset(kind for part in parts for kind in self.floats(part))
        return frozenset(self._floats.get(self.find(value), ()))

    def either(self, value: Value, at: int) -> bool:
        """The program says that the word in this byte of the value is a float on one path and a pointer on another."""
        return (self.find(value), at) in self._either

    def used_as_integer(self, value: Value) -> bool:
        """Some arithmetic treats the value as a number."""
        return isinstance(value, ConstInt) or self.find(value) in self._integer

    @cached_property
    def _counts(self) -> set[Value]:
        """The classes of subscripts and of sizes of memory, of what they are computed of by adding and scaling, and of
        what is compared with one."""
        work, seen = list(self._subscripts), set(self._subscripts)
        classes: set[Value] = set()
        while work:
            while work:
                value = work.pop()
                if _tracked(value):
                    classes.add(self.find(value))
                if isinstance(value, Instruction) and value.opcode in _STEPS | CHOICES:
                    fresh = [v for v in value.operands[value.opcode == "select":] if v.type.is_int and v not in seen]
                    seen.update(fresh)
                    work += fresh
            for a, b in self._compared:
                for one, other in ((a, b), (b, a)):
                    if other not in seen and (one in seen or self.find(one) in classes):
                        seen.add(other)
                        work.append(other)
        return classes

    def counts(self, value: Value) -> bool:
        """The value says where in memory something is, or how much there is of it: it is added up and scaled to be a
        subscript or a size, or compared with one. The bits of a float never are, unless they are masked or shifted."""
        return self.find(value) in self._counts

    def origins(self, value: Value) -> list[Value]:
        """Where an integer that is taken out of a struct may come from: all that is not only handed on. None for the
        tag of a variant, which is a constant."""
        return self._origins.get(self.find(value), [])

    @cached_property
    def _origins(self) -> dict[Value, list[Value]]:
        found: dict[Value, list[Value]] = {}
        for member in dict.fromkeys([*self._parent, *map(self.find, self._parent)]):
            value = member.whole if isinstance(member, Part) else member
            if not self._handed_on(value):
                found.setdefault(self.find(member), []).append(value)
        return found

    def _handed_on(self, value: Value) -> bool:
        if not isinstance(value, Instruction):
            return False
        targets = self._pointers.callees(value) if value.is_call else None
        return value.opcode in _HANDS_ON or (bool(targets) and all(fn.blocks for fn in targets or ()))

    def memory(self, value: Value, pointer: Value, named: Instruction | None) -> None:
        """The value is loaded from, or stored to, `pointer`. `named`: that access, of what the source calls an
        integer."""
        if _tracked(value):
            self.accesses.append((value, pointer, named))

    def learn(self, value: Value, layout: Layout) -> bool:
        """Add what became known of a value. True when that is new."""
        own = self._layout.setdefault(self.find(value), {})
        size, changed = ty.store_size(value.type), False
        counter = self.find(value) in self._counters
        for at, kind in layout:
            if at < 0 or at + kind_size(kind) > size or (counter and isinstance(kind, ty.FloatType)):
                continue
            if isinstance(kind, ty.FloatType):
                self._floats.setdefault(self.find(value), set()).add(kind)
            held = own.get(at)
            if kind is CONFLICT and isinstance(held, Type):  # what is asked of memory first may be a part of it
                more = (at, held) not in self._said.get(self.find(value), ())
            else:
                more = held is INT and isinstance(kind, Type)
            if held is kind or (held is not None and not more):
                continue
            own[at] = kind
            changed = True
        return changed

    def may_be(self, value: Value, kind: Type) -> None:
        """The value carries this float where it carries no pointer."""
        self._floats.setdefault(self.find(value), set()).add(kind)

    def _part(self, whole: Value, path: tuple[int, ...], leaf: Type) -> Value:
        """The integer at one place of a struct."""
        if not path:
            return whole
        if (whole, path) not in self._in_structs:
            self._in_structs[whole, path] = Part(leaf, whole)
        return self._in_structs[whole, path]

    def _unite(self, a: Value, b: Value, inside: tuple[int, ...] = ()) -> None:
        """`a` holds the same bits as `b`, or as what is at one place of the struct `b`."""
        if a.type.is_aggregate or inside:
            if isinstance(b, Instruction | Argument):
                for path, leaf in integers_in(a.type):
                    self._unite(self._part(a, path, leaf), self._part(b, (*inside, *path), leaf))
            return
        if not (_tracked(a) and _tracked(b)):
            return
        a, b = self.find(a), self.find(b)
        if a is b:
            return
        self._parent[b] = a
        if b in self._integer:
            self._integer.add(a)
        if b in self._floats:
            self._floats.setdefault(a, set()).update(self._floats.pop(b))
        for at, kind in self._layout.pop(b, {}).items():
            self._layout.setdefault(a, {}).setdefault(at, kind)
        if b in self._said:
            self._said.setdefault(a, set()).update(self._said.pop(b))

    def visit(self, instr: Instruction) -> None:
        """Collect what one instruction says."""
        op = instr.opcode
        if op in CHOICES:
            for operand in instr.operands[1:] if op == "select" else instr.operands:
                self._unite(instr, operand)
        elif op == "extractvalue":
            self._unite(instr, instr.operands[0], tuple(instr.indices))
        elif op == "insertvalue":
            self._insert(instr, instr.operands[0], instr.operands[1], tuple(instr.indices))
        elif op == "icmp" and all(_tracked(operand) for operand in instr.operands):
            self._compared.append((instr.operands[0], instr.operands[1]))
        elif op in _ARITHMETIC:
            self._number(instr, *instr.operands)
        elif op == "getelementptr":
            self._number(*instr.operands[1:])
            self._subscripts.update(dict.fromkeys(instr.operands[1:]))
        elif op == "ptrtoint":
            self.learn_if(instr, ((0, ty.PTR),))
        elif op == "inttoptr":
            self.learn_if(instr.operands[0], ((0, ty.PTR),))
        elif op in ("fptosi", "fptoui"):
            self._number(instr)
        elif op == "ret" and instr.operands and (_tracked(instr.operands[0]) or instr.operands[0].type.is_aggregate):
            self._return(instr)
        elif instr.is_call and instr.callee_name == WORD_SUM:
            for operand in instr.args:
                self._unite(instr, operand)
            self.learn_if(instr, ((0, ty.F64), (0, ty.PTR)))
        elif instr.is_call:
            self._call(instr)
        elif op == "switch":
            self._number(instr.operands[0])
        elif op == "alloca":
            self._number(*instr.operands)
        if op in _PARTS:
            self._parts.append(instr)
        if op == "bitcast":
            self._cast(instr)

    def _insert(self, result: Instruction, whole: Value, new: Value, at: tuple[int, ...]) -> None:
        """`result` is `whole` with `new` at one place."""
        for path, leaf in integers_in(result.type):
            if path[: len(at)] != at:
                if isinstance(whole, Instruction | Argument):
                    self._unite(self._part(result, path, leaf), self._part(whole, path, leaf))
            elif isinstance(new, Instruction | Argument):
                self._unite(self._part(result, path, leaf), self._part(new, path[len(at):], leaf))

    def learn_if(self, value: Value, layout: Layout) -> None:
        """`learn` what the program says of a value, if that is an integer of the module."""
        if _tracked(value):
            self.learn(value, layout)
            self._said.setdefault(self.find(value), set()).update(layout)

    def settle(self) -> None:
        """A float on one path and a pointer on another, the program says, are both: also where it says so of a part.
        And what is computed, and never moved from elsewhere, to be a subscript carries no float, wherever it is stored
        besides."""
        floats = {root for root, said in self._said.items() if any(isinstance(kind, ty.FloatType) for _, kind in said)}
        self._counters = {
            root
            for root in self._counts - floats
            if all(isinstance(v, Instruction) and v.opcode in INT_BINARY for v in self._origins.get(root, [root]))
        }
        changed = any(kind is ty.PTR for said in self._said.values() for _, kind in said)
        while changed:
            changed = False
            for instr in self._parts:
                for source, result, shift, first, end in self._links(instr):
                    changed |= self._say(source, result, -shift, first, end)
                    changed |= self._say(result, source, shift, first + shift, end + shift)
        for root, said in self._said.items():
            for at in {at for at, kind in said if kind is ty.PTR}:
                if any(at <= other < at + kind_size(ty.PTR) and isinstance(kind, ty.FloatType) for other, kind in said):
                    self._layout.setdefault(root, {})[at] = CONFLICT
                    self._either.add((root, at))
                    self._floats.setdefault(root, set()).update(
                        kind for _, kind in said if isinstance(kind, ty.FloatType))  # fmt: skip

    def _say(self, source: Value, target: Value, shift: int, first: int, end: int) -> bool:
        """Hand on what the program says of the bytes [first, end) of the target."""
        if not (_tracked(source) and _tracked(target)):
            return False
        moved = {(at + shift, kind) for at, kind in self._said.get(self.find(source), ())
                 if first <= at + shift and at + shift + kind_size(kind) <= end}  # fmt: skip
        if not moved:
            return False
        known = self._said.setdefault(self.find(target), set())
        fresh = not moved <= known
        known |= moved
        return fresh

    def _number(self, *values: Value) -> None:
        for value in values:
            if _tracked(value):
                self._integer.add(self.find(value))

    def _cast(self, instr: Instruction) -> None:
        source = instr.operands[0]
        if source.type.is_fp:
            self.learn_if(instr, tuple((at, kind) for at, kind, _ in leaves(source.type)))
        elif instr.type.is_fp and not reads_bits_of_address(instr, self._pointers):
            read = self._read_lanes(instr)
            found = enumerate(leaves(instr.type))
            self.learn_if(source, tuple((at, kind) for i, (at, kind, _) in found if read is None or i in read))

    def _read_lanes(self, cast: Instruction) -> set[int] | None:
        """The lanes of a vector of floats that are taken out of it where nothing else is done with it; None for all:
        the others may hold anything."""
        fn = cast.block.function if cast.block is not None else None
        if fn is None or not cast.type.is_vector:
            return None
        if fn not in self._users:
            self._users[fn] = uses_of(fn.blocks)
        users = self._users[fn].get(cast, ())
        taken = [u.operands[1] if u.opcode == "extractelement" else None for u in users]
        lanes = {lane.value for lane in taken if isinstance(lane, ConstInt)}
        return lanes if all(isinstance(lane, ConstInt) for lane in taken) else None

    def _return(self, instr: Instruction) -> None:
        assert instr.block is not None and instr.block.function is not None
        fn = instr.block.function
        first = self._returns.setdefault(fn, instr.operands[0])
        self._unite(first, instr.operands[0])
        for call in self._pointers.calls.get(fn, ()):
            self._unite(first, call)

    def _call(self, call: Instruction) -> None:
        effect = self._pointers.effect(call)
        if effect is not None and (effect.allocates or effect.moves is not None or effect.copy is not None):
            self._subscripts.update(dict.fromkeys(arg for arg in call.args if _tracked(arg)))
        for fn in self._pointers.callees(call) or ():
            if fn.blocks:
                for actual, formal in zip(call.args, fn.args, strict=False):
                    self._unite(formal, actual)

    # -- parts of values ----------------------------------------------------------------------------------------------

    def propagate(self) -> bool:
        """Pass layouts through truncations, extensions, shifts and disjoint unions, both ways."""
        any_change = False
        while True:
            changed = False
            for instr in self._parts:
                for source, result, shift, first, end in self._links(instr):
                    changed |= self._pass(source, result, -shift, first, end)
                    changed |= self._pass(result, source, shift, first + shift, end + shift)
            if not changed:
                return any_change
            any_change = True

    def _links(self, instr: Instruction) -> list[tuple[Value, Value, int, int, int]]:
        """(source, result, k, first, end): byte b + k of the source is byte b of the result, for first <= b < end."""
        op, operands, size = instr.opcode, instr.operands, ty.store_size(instr.type)
        if op in CASTS:
            plain = not instr.type.is_vector or op == "bitcast"
            return [(operands[0], instr, 0, 0, min(size, ty.store_size(operands[0].type)))] if plain else []
        if op in ("lshr", "shl"):
            by = operands[1]
            if not isinstance(by, ConstInt) or by.value % 8:
                return []
            moved = by.value // 8
            return [(operands[0], instr, moved, 0, size) if op == "lshr" else (operands[0], instr, -moved, moved, size)]
        if op in _VECTOR:
            return [(source, result, (start - at) * width, at * width, (at + 1) * width)
                    for source, start, result, at, width in moved_lanes(instr)]  # fmt: skip
        return [(operand, instr, 0, 0, size) for operand in operands]

    def _pass(self, source: Value, target: Value, shift: int, first: int, end: int) -> bool:
        """Hand on what lies in the bytes [first, end) of the target; those that are filled with zeros hold nothing."""
        if not (_tracked(source) and _tracked(target)):
            return False
        moved = tuple((at + shift, kind) for at, kind in self.layout(source)
                      if kind is not INT and first <= at + shift and at + shift + kind_size(kind) <= end)  # fmt: skip
        if moved and isinstance(target, Instruction) and target.opcode in ("zext", "shl"):
            (_, _, _, begin, stop), *_ = self._links(target) or [(target, target, 0, 0, 0)]
            moved = tuple(e for e in moved if begin <= e[0] < stop)
        return bool(moved) and self.learn(target, moved)
