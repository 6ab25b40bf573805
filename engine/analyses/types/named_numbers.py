"""Integers beside floats in one block of memory, where what is at which place is not known.

A structure of arrays in one allocation has an array of integers somewhere among its arrays of floats; how far from the
start depends on their length. The language says that what is stored as a float is not read as an `int`, and `!tbaa`
says which accesses the source makes as one. A program that breaks the rule (the bits of floats as integers, in place)
would lose a derivative without notice, so it is believed only of memory that is given integers which come from no
memory: a constant, a counter, something computed. And only where nothing that has no name in the source (`memcpy`, a
union, bytes) is written by an index or at a length that is not known: that may be the bits of floats at another time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.objects import BY_VALUE
from irgrad.engine.analyses.memory.strided_sets import NATURAL, Offsets, add, touches
from irgrad.engine.analyses.memory.tbaa import Tbaa, type_tag
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, INT_BINARY, RESIZES
from irgrad.engine.ir.uses import uses_of

__all__ = ["NamedNumbers"]

_COMPUTES = INT_BINARY | RESIZES | {"phi"}
_SAME = CHOICES | {"freeze", "bitcast"}
_SAME |= {"insertelement", "extractelement"}
_SAME |= {"insertvalue", "extractvalue"}
_SAME |= {"shufflevector"}
_MOST = 64  # values that an integer is made of


class NamedNumbers:
    """`are(access)`: whether a load or store finds numbers alone, wherever in its memory it is."""

    def __init__(self, tbaa: Tbaa, ranges: Ranges) -> None:
        self._tbaa = tbaa
        self._ranges = ranges
        self._given: set[int] = set()
        self._stores: dict[int, list[tuple[Offsets, int, Value]]] = {}
        self._unnamed: dict[int, set[tuple[Offsets, int]]] = {}
        self._written: dict[int, set[tuple[Offsets, int]]] = {}  # at known places as well
        self._integers: dict[int, list[tuple[Offsets, int, Value]]] = {}
        self._counters: dict[Instruction, bool] = {}
        self._moving: dict[Instruction, bool] = {}
        self._of: dict[Function, dict[Value, list[Instruction]]] = {}

    def stored(self, store: Instruction) -> None:
        """A store of an integer."""
        value, pointer = store.operands
        for bit, places in self._ranges.places(pointer).items():
            self._integers.setdefault(bit, []).append((places, ty.store_size(value.type), value))
        for bit, places in self._ranges.places(pointer).items() if type_tag(store) or not self.moves(store) else ():
            self._stores.setdefault(bit, []).append((places, ty.store_size(value.type), value))
        if self._named(store) and not _from_memory(value):
            self._given.update(self._ranges.places(pointer))

    def unnamed(self, pointer: Value, size: int | None) -> None:
        """A write of so many bytes, or of an unknown number, that may be of any type."""
        for bit, places in self._ranges.places(pointer).items():
            if size is not None and self._ranges.outside(bit, places, size):
                continue
            everywhere = (add(places, NATURAL), 1) if size is None else (places, size)
            self._written.setdefault(bit, set()).add(everywhere)
            if size is None:
                self._unnamed.setdefault(bit, set()).add((add(places, NATURAL), 1))
            elif not places.exact:
                self._unnamed.setdefault(bit, set()).add((places, size))

    def believed(self, bit: int, places: Offsets, size: int) -> bool:
        """Whether the names of the source say what is at these places: nothing without a name is written there."""
        return not any(touches(places, where, 1 - length, size) for where, length in self._unnamed.get(bit, ()))

    def are(self, access: Instruction) -> bool:
        """The source calls what is loaded or stored an integer, all memory that it may be was given such, and it is not
        just moved: what copies words may copy those of floats. Or it is a truth value: LLVM takes that for 0 or 1."""
        if access not in self._counters:
            self._counters[access] = self._is_truth(access) or self._counts(access, set())
        if self._counters[access]:
            return True
        if not self._given or not self._named(access) or self.moves(access):
            return False
        spots = self._ranges.places(access.operands[access.opcode == "store"])
        return any(not places.exact for places in spots.values()) and all(
            bit in self._given and bit not in self._unnamed for bit in spots
        )

    def _counts(self, access: Instruction, assumed: set[Instruction]) -> bool:
        """One place of one object, written by the names of integers alone, of which some come from no memory and all
        are computed of such places: the length of a list, whose end a pointer to its nodes may lead to."""
        if access in assumed:
            return True
        size = ty.store_size(access.operands[0].type if access.opcode == "store" else access.type)
        spots = [(bit, at) for bit, at in self._ranges.places(access.operands[access.opcode == "store"]).items()
                 if not self._ranges.outside(bit, at, size)]  # fmt: skip
        member = self._named(access) and self._tbaa.of_member(access.metadata["tbaa"])
        if not member or len(spots) != 1 or not spots[0][1].exact or self.moves(access):
            return False
        assumed.add(access)
        bit, at = spots[0]
        if any(touches(at, where, 1 - length, size) for where, length in self._written.get(bit, ())):
            return False
        stored = [v for where, length, v in self._integers.get(bit, ()) if touches(at, where, 1 - length, size)]
        return not all(map(_from_memory, stored)) and all(self._computed(value, assumed) for value in stored)

    def _computed(self, value: Value, assumed: set[Instruction]) -> bool:
        """Whether an integer is a constant, or what arithmetic makes of such and of lengths."""
        for source in _sources(value):
            if isinstance(source, Instruction) and source.opcode == "load":
                if not _by_value(source) and (source is value or not self._counts(source, assumed)):
                    return False
            elif not (isinstance(source, ConstInt) or (
                isinstance(source, Instruction) and source.opcode in _COMPUTES and source.type.is_int)):  # fmt: skip
                return False
        return True

    def given(self, bit: int, places: Offsets, size: int) -> bool:
        """Whether an integer is ever stored at these places of an object that was not made of what the object holds,
        nor of the bits of a float: what is read there as one is an integer then."""
        return any(
            touches(places, where, 1 - length, size) and not self._made_of(value, bit)
            for where, length, value in self._stores.get(bit, ())
        )

    def _made_of(self, value: Value, bit: int) -> bool:
        def stays(v: Value) -> bool:
            if not isinstance(v, Instruction):
                return False
            bits = v.opcode == "bitcast" and v.operands[0].type.is_fp
            return bits or (v.opcode == "load" and bit in self._ranges.places(v.operands[0]))

        return any(map(stays, _sources(value)))

    def moves(self, access: Instruction) -> bool:
        """Whether what is loaded is stored, handed on or returned as it is, or what is stored came from there so."""
        if access not in self._moving:
            if access.opcode == "store":
                rows = {access.operands[0], *_followed(access.operands[0], _made_of)}
                moves = any(isinstance(v, Argument) or (
                    isinstance(v, Instruction) and (v.opcode == "load" or v.is_call)) for v in rows)  # fmt: skip
            else:
                users = self._users(access)
                rows = _followed(access, lambda value: users.get(value, ()))
                moves = any(isinstance(v, Instruction) and (
                    v.opcode in ("store", "ret") or (v.is_call and not (v.callee_name or "").startswith("llvm.")))
                    for v in rows)  # fmt: skip
            self._moving[access] = moves
        return self._moving[access]

    def _users(self, access: Instruction) -> dict[Value, list[Instruction]]:
        """The users of the values of the function of an access."""
        fn = access.block.function if access.block is not None else None
        assert fn is not None
        if fn not in self._of:
            self._of[fn] = uses_of(fn.blocks)
        return self._of[fn]

    def _is_truth(self, access: Instruction) -> bool:
        tag = access.metadata.get("tbaa")
        return bool(tag) and self._tbaa.is_truth(tag or "")

    def _named(self, access: Instruction) -> bool:
        tag = access.metadata.get("tbaa")
        return bool(tag) and self._tbaa.kind(tag or "") is INT


def _by_value(load: Instruction) -> bool:
    """An integer that is handed to the root by value."""
    address = load.operands[0]
    return load.type.is_int and isinstance(address, Argument) and BY_VALUE in address.attrs


def _made_of(value: Value) -> Iterable[Value]:
    return value.operands if isinstance(value, Instruction) and value.opcode in _SAME else ()


def _followed(start: Value, following: Callable[[Value], Iterable[Value]]) -> set[Value]:
    """Where a value goes, or comes from, through operations that hand it on as it is: those and what is behind them."""
    found: set[Value] = set()
    work = [start]
    while work:
        for value in following(work.pop()):
            if value not in found:
                found.add(value)
                if isinstance(value, Instruction) and value.opcode in _SAME:
                    work.append(value)
    return found


def _sources(value: Value) -> Iterable[Value]:
    """What an integer is computed of in its function, up to loads and calls."""
    seen, work = {value}, [value]
    while work:
        value = work.pop()
        yield value
        if isinstance(value, Instruction) and value.opcode != "load" and not value.is_call and len(seen) <= _MOST:
            fresh = [operand for operand in value.operands if operand not in seen]
            seen.update(fresh)
            work += fresh


def _from_memory(value: Value) -> bool:
    """Whether loads, calls, arguments or the bits of floats are among what an integer is computed of."""
    seen, work = {value}, [value]
    while work:
        value = work.pop()
        if isinstance(value, Argument):
            return True
        if isinstance(value, Instruction):
            bits = value.opcode == "bitcast" and value.operands[0].type.is_fp
            if bits or value.opcode == "load" or value.is_call or len(seen) > _MOST:
                return True
            fresh = [operand for operand in value.operands if operand not in seen]
            seen.update(fresh)
            work += fresh
    return False
