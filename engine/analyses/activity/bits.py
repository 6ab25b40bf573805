"""The bits of floats in integer code: where they are computed with, and where that comes back as a float.

Integers that only move a float are followed as that float. Arithmetic on its bits is not: a tangent does not go through
`mul i64`. Most of it needs no derivative (a hash, a comparison, an exponent taken out by a shift: all constant almost
everywhere). What does come back as a float, or overwrites one, has a derivative that nothing here knows, so it is found
by following such integers forwards through values, calls and memory, and refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, CONFLICT
from irgrad.engine.analyses.memory.objects import is_tape
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets, meets, touches
from irgrad.engine.analyses.memory.tbaa import AS_FLOAT
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Constant, ConstFloat, ConstInt, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, INT_BINARY, LANES_OUT, RESIZES, SHIFTS, having
from irgrad.engine.runtime.word_sums import WORD_SUM

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.activity import Activity

HELD, MOVED, COMPUTED = 1, 2, 4
"""A set of these: read from memory that may hold something else (a union); the bits of a float; arithmetic was done."""

_MOVES = having("moves_bits")
_POINTERS = having("pointer_cast")
_CUT_OUT = having("takes_part") | LANES_OUT
_CUTS = (SHIFTS - {"shl"}) | {"and"}
_DISPLACES = having("displaces")
_ROUNDED = _DISPLACES | RESIZES | {"mul", "freeze"}  # a rounded float is still one behind these
_COUNTS = ("llvm.ct", "llvm.scmp.", "llvm.ucmp.", "llvm.is.constant", "llvm.expect")  # constant almost everywhere
_ROUNDS = ("llvm.lrint", "llvm.llrint", "llvm.lround", "llvm.llround", "lrint", "llrint", "lround", "llround")
_MAX_CHAIN = 32
_MOST_PLACES = 64  # of an object
_MANTISSA = {16: 7, 32: 23, 64: 52, 80: 64, 128: 112}


class Bits:
    """`found`: where integer arithmetic on the bits of a varied float makes a useful float, each with the reason."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._pointers = activity.pointers
        self._state: dict[Value, int] = {}
        self._memory: dict[int, dict[tuple[Offsets, int], int]] = {}  # object -> (places, bytes) of integers -> state
        self._returns: dict[Function, int] = {}
        self._numbers: set[Value] = set()  # floats computed from the bits of others, taken for a number
        self._rounds = any(_rounds(instr) for fn in self._pointers.functions for instr in fn.instructions())
        self._again = True
        while self._again:
            self._again = False
            for fn in self._pointers.functions:
                for instr in fn.instructions():
                    self._visit(instr)
        self.found = list(self._sinks())

    # -- forwards ------------------------------------------------------------------------------------------------

    def _set(self, value: Value, state: int) -> None:
        before = self._state.get(value, 0)
        if state | before != before:
            self._state[value] = state | before
            self._again = True

    def _visit(self, instr: Instruction) -> None:
        op = instr.opcode
        if op == "load":
            self._load(instr)
        elif op == "store":
            self._store(instr)
        elif op == "bitcast" and instr.operands[0].type.is_fp:
            if instr.type.scalar.is_int and self._activity.varied(instr.operands[0]):
                # LLVM makes such casts when it takes a union apart: then a load or a phi is what it casts
                self._set(instr, MOVED if self._is_float(instr.operands[0]) else HELD)
        elif op == "ret":
            self._return(instr)
        elif instr.is_call:
            self._call(instr)
        elif instr.type.scalar.is_fp:
            self._number(instr)
        elif op in INT_BINARY:
            state = self._of(instr)
            if state and not self._beside_floats(instr) and not self._constant_almost_everywhere(instr):
                self._set(instr, state if self._activity.flow.carries(instr) else state | COMPUTED)
        elif op in _POINTERS:
            state = self._of(instr)
            self._set(instr, state | COMPUTED if state else 0)
        elif op in _MOVES and not instr.type.scalar.is_fp:
            if op == "trunc" and self._beside_floats(instr):
                return
            self._set(instr, self._of(instr, 1 if op == "select" else 0))

    def _number(self, instr: Instruction) -> None:
        """Such a number has no tangent, and may become the bits of a float again (a power by the bits of a float)."""
        first = instr.operands[0] if instr.opcode in ("sitofp", "uitofp") else None
        made = any(o in self._numbers for o in instr.operands) if first is None else self._state.get(first, 0) & MOVED
        if made and instr not in self._numbers:
            self._numbers.add(instr)
            self._again = True

    def _of(self, instr: Instruction, first: int = 0) -> int:
        values = instr.operands[first:]
        state = self._any(values)
        joins = instr.opcode in ("phi", "select") or (instr.opcode == "or" and not isinstance(values[-1], Constant))
        if state & MOVED and joins and not all(self._state.get(v, 0) & MOVED or v is instr for v in values):
            return state & ~MOVED | HELD  # perhaps the other member of a union
        return state

    def _is_float(self, value: Value) -> bool:
        """Certainly computed as a float: not read from memory that other data shares, nor made of an integer."""
        seen: set[Value] = set()
        work = [value]
        while work:
            value = work.pop()
            if isinstance(value, ConstFloat) and _number_like(value.value):
                return False  # a small integer, most likely
            if value in seen or not isinstance(value, Instruction):
                continue
            seen.add(value)
            if value.opcode == "phi" and _joins_zero(value):
                return False
            if value.opcode in CHOICES:
                work += value.operands[1:] if value.opcode == "select" else value.operands
            elif value.opcode == "load":
                if not self._pure(value.operands[0]):
                    return False
            elif value.opcode == "bitcast" and not value.operands[0].type.is_fp:
                return False
        return True

    def _pure(self, address: Value) -> bool:
        """Memory that holds floats and nothing else: buffers of the signature, and what only floats are stored in."""
        objects = self._activity.flow.objects(address)
        contents = self._activity.types.contents
        return all(o.kind == "argument" or contents.only_floats(o) for o in objects)

    def _any(self, values: list[Value]) -> int:
        state = 0
        for value in values:
            state |= self._state.get(value, 0)
        return state

    def _load(self, instr: Instruction) -> None:
        if not instr.type.scalar.is_int or self._activity.types.numbers.are(instr):
            return
        address = instr.operands[0]
        if self.float_memory(address, ty.store_size(instr.type), varied=True):
            # Other memory may be a union whose other member this is.
            self._set(instr, MOVED if self._pure(address) else HELD)
        elif ty.store_size(instr.type) > 1 and any(self._parts(address, ty.store_size(instr.type))):
            self._set(instr, MOVED if self._pure(address) else HELD)
        if not self._memory or AS_FLOAT in instr.metadata:
            return
        spots, size = self._activity.types.ranges.places(address), ty.store_size(instr.type)
        for bit in self._objects(address):
            places = spots.get(bit, TOP)
            for (where, length), state in self._memory.get(bit, {}).items():
                self._set(instr, state if touches(places, where, 1 - length, size) else 0)

    def _store(self, instr: Instruction) -> None:
        value, address = instr.operands
        state = self._state.get(value, 0)
        if state and self._part_of_float(value) and not self._into_float(instr):
            state |= COMPUTED  # memory of integers, from which nobody follows it back into a float
        if state & COMPUTED or (state and ty.store_size(value.type) == 1):
            spots, size = self._activity.types.ranges.places(address), ty.store_size(value.type)
            for bit in self._objects(address):
                known, key = self._memory.setdefault(bit, {}), (spots.get(bit, TOP), size)
                if len(known) >= _MOST_PLACES:
                    key = TOP, size
                before = known.get(key, 0)
                if before | state != before:
                    known[key] = before | state
                    self._again = True

    def _part_of_float(self, value: Value) -> bool:
        """An integer that is cut out of the bits of a larger float."""
        size, whole = ty.store_size(value.type.scalar), value
        if any(isinstance(kind, ty.FloatType) for _, kind in self._activity.types.carriers.layout(value)):
            return False
        for _ in range(_MAX_CHAIN):
            if not isinstance(whole, Instruction) or whole.opcode not in _CUT_OUT:
                break
            whole = whole.operands[0]
        wide = whole.type.scalar if whole.type.is_fp or self._state.get(whole, 0) else value.type.scalar
        return ty.store_size(wide) > size

    def _objects(self, address: Value) -> Iterator[int]:
        from irgrad.engine.analyses.memory.objects import bits_of

        yield from bits_of(self._pointers.of(address))

    def _return(self, instr: Instruction) -> None:
        assert instr.block is not None and instr.block.function is not None
        before = self._returns.get(instr.block.function, 0)
        state = before | self._of(instr)
        if state != before:
            self._returns[instr.block.function] = state
            self._again = True

    def _call(self, call: Instruction) -> None:
        known = False
        for fn in self._pointers.callees(call) or ():
            if fn.blocks:
                known = True
                for actual, formal in zip(call.args, fn.args, strict=False):
                    self._set(formal, self._state.get(actual, 0))
                self._set(call, self._returns.get(fn, 0))
        if not known and call.type.scalar.is_fp:
            self._number(call)
        if known or call.type is ty.VOID or call.type.is_fp or (call.callee_name or "").startswith(_COUNTS):
            return
        state = self._any(call.args)
        moved = (call.callee_name or "").startswith(("llvm.fsh", WORD_SUM)) and self._activity.flow.carries(call)
        self._set(call, 0 if not state else state if moved else state | COMPUTED)

    def _constant_almost_everywhere(self, instr: Instruction) -> bool:
        """Only sign and exponent are left: shifted right past the mantissa, or everything else masked out."""
        by = instr.operands[1]
        if instr.opcode not in _CUTS or not isinstance(by, ConstInt):
            return False
        known = self._lowest(instr.operands[0])
        if known is None:
            return False
        scalar, low = known
        mantissa = _MANTISSA.get(8 * ty.store_size(scalar), 0)
        if instr.opcode == "and":
            return mantissa > 0 and by.value << low & ((1 << mantissa) - 1) == 0
        return 0 < mantissa <= low + by.value

    def _beside_floats(self, value: Value) -> bool:
        """Shifts and casts take out the part of a packed struct (passed by value in an integer) that is no float."""
        low, width = 0, 8 * ty.store_size(value.type)
        for _ in range(_MAX_CHAIN):
            if not isinstance(value, Instruction) or value.type.is_vector:
                break
            by = value.operands[1] if len(value.operands) > 1 else None
            if value.opcode in ("lshr", "ashr") and isinstance(by, ConstInt):
                low += by.value
            elif value.opcode not in ("trunc", "zext"):
                break
            value = value.operands[0]
            width = min(width, 8 * ty.store_size(value.type) - low)
        if low == 0 and width == 8 * ty.store_size(value.type):
            return False
        floats = [(8 * at, kind) for at, kind in self._activity.types.carriers.layout(value)
                  if isinstance(kind, ty.FloatType)]
        return bool(floats) and not any(
            at < low + width and low < at + 8 * ty.store_size(kind) for at, kind in floats
        )

    def _lowest(self, value: Value) -> tuple[ty.Type, int] | None:
        """The float that a chain of shifts and casts takes apart, and which of its bits the lowest one of `value` is
        (sums with constants do not move it: a carry out of the mantissa changes almost nowhere)."""
        low = 0
        for _ in range(_MAX_CHAIN):
            if not isinstance(value, Instruction):
                return None
            op = value.opcode
            if op == "bitcast" and value.operands[0].type.is_fp and not value.type.is_vector:
                scalar = value.operands[0].type
                return None if scalar.is_vector else (scalar, low)
            if op == "load":
                return self._loaded(value, low)
            if op in ("lshr", "ashr"):
                if not isinstance(value.operands[1], ConstInt):
                    return None
                low += value.operands[1].value
            elif op in _DISPLACES:
                if not isinstance(value.operands[1], ConstInt):
                    return None
            elif op not in RESIZES and op != "freeze":
                return (value.type.scalar, low) if self._state.get(value, 0) else None
            value = value.operands[0]
        return None

    def _loaded(self, load: Instruction, low: int) -> tuple[ty.Type, int] | None:
        """The float behind an integer that is loaded: a whole one, or the upper part of one."""
        size, pointer = ty.store_size(load.type), load.operands[0]
        layout = self._activity.types.access(pointer, size)
        if len(layout) == 1 and isinstance(layout[0][1], ty.FloatType):
            return layout[0][1], low
        found = set(self._parts(pointer, size))
        if len(found) != 1 or load.type.is_vector:
            return None
        ((kind, at),) = found
        return kind, low + 8 * at

    def _parts(self, pointer: Value, size: int) -> Iterator[tuple[ty.Type, int]]:
        """Floats of which an access touches a part only, each with the first byte that is touched."""
        types = self._activity.types
        spots = types.ranges.places(pointer)
        for obj in self._activity.flow.objects(pointer):
            places = spots.get(obj.index)
            if places is None or not self._activity.varied_object(obj):
                continue
            for where, kind, length, strength in types.record(obj.index).evidence:
                if strength == ACCESS and isinstance(kind, ty.FloatType) and length > size:
                    for at in meets(places, where, 1 - length, 1):
                        if size - at <= length:
                            yield kind, -at

    # -- where it matters ----------------------------------------------------------------------------------------

    def float_memory(self, address: Value, size: int, *, varied: bool) -> bool:
        """An access to whole floats, or a byte of one, in memory that depends on (or reaches) an active argument."""
        has = self._activity.varied_object if varied else self._activity.useful_object
        if not any(has(o) for o in self._activity.flow.objects(address)):
            return False
        layout = self._activity.types.access(address, size)
        floats = [kind for _, kind in layout if isinstance(kind, ty.FloatType)]
        if size == 1:
            return any(kind is CONFLICT for _, kind in layout)
        return sum(map(ty.store_size, floats)) == size  # else other data shares the bytes

    def _into_float(self, store: Instruction) -> bool:
        value, pointer = store.operands
        size = ty.store_size(value.type)
        if not any(self._activity.useful_object(o) for o in self._activity.flow.objects(pointer)):
            return False
        return size > 1 and (
            self.float_memory(pointer, size, varied=False) or any(self._parts(pointer, size))
        )

    def _into_buffer(self, store: Instruction) -> bool:
        """Into memory that is said to hold floats all over, whatever the source calls what it stores there."""
        objects = [o for o in self._activity.flow.objects(store.operands[1]) if self._activity.useful_object(o)]
        size = ty.store_size(store.operands[0].type.scalar)
        return any(self._activity.types.buffers.get(o.index) == size for o in objects)

    def rounded(self, value: Value) -> bool:
        """Made by arithmetic of an active float that was rounded to an integer, and not moved into the exponent."""
        seen: set[Value] = set()
        work = [value] if self._rounds and value.type.scalar.is_int else []
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value, Argument) and value.function is not None:
                work += [call.args[value.index] for call in self._pointers.calls.get(value.function, ())
                         if value.index < len(call.args)]  # fmt: skip
            if not isinstance(value, Instruction):
                continue
            op = value.opcode
            if _rounds(value):
                if self._activity.varied(value.operands[0]) or value.operands[0] in self._numbers:
                    return True
            elif value.is_call:
                work += [end.operands[0] for fn in self._pointers.callees(value) or () for end in _ends(fn)]
            elif op == "shl":
                by = value.operands[1]
                least = {16: 7, 32: 20, 64: 52}.get(8 * ty.store_size(value.type.scalar), 52)  # 20: an upper half
                if not isinstance(by, ConstInt) or by.value < least:
                    work.append(value.operands[0])
            elif op == "mul" and isinstance(value.operands[1], ConstInt) and not value.operands[1].value & 0xFFFFF:
                continue
            elif op in _ROUNDED:
                work += value.operands
        return False

    def _sinks(self) -> Iterator[tuple[Instruction, str]]:
        for fn in self._pointers.functions:
            for instr in fn.instructions():
                reason = self._sink(instr)
                if reason:
                    yield instr, reason

    def _sink(self, instr: Instruction) -> str:
        op = instr.opcode
        if op in ("atomicrmw", "cmpxchg") and not instr.operands[-1].type.is_fp:
            address, value = instr.operands[0], instr.operands[-1]
            if value.type.is_int and self.float_memory(address, ty.store_size(value.type), varied=False):
                return "an atomic operation on integers changes an active float"
            return ""
        state = self._state.get(instr.operands[0], 0) if instr.operands else 0
        if (
            op == "bitcast" and instr.type.is_fp and self._activity.useful(instr) and self.rounded(instr.operands[0])
        ) or (
            op == "store" and self.rounded(instr.operands[0]) and (self._into_float(instr) or self._into_buffer(instr))
        ):
            return "an active float, rounded to an integer, becomes the bits of a float"
        if not state:
            return ""
        if op == "bitcast" and instr.type.is_fp and state & COMPUTED and self._activity.useful(instr):
            return "integer arithmetic on the bits of an active float makes a float again"
        if op in ("sitofp", "uitofp") and state & MOVED and self._activity.useful(instr):
            return "the bits of an active float are used as a number"
        moved = op == "store" and not self._activity.types.numbers.are(instr)
        if moved and (state & COMPUTED or ty.store_size(instr.operands[0].type) == 1):
            size = ty.store_size(instr.operands[0].type)
            kept = size == 1 and all(map(is_tape, self._activity.flow.objects(instr.operands[1])))
            if not kept and self.float_memory(instr.operands[1], size, varied=False):
                what = "integer arithmetic on the bits of an active float makes a float again"
                return what if state & COMPUTED else "an active float is copied byte by byte"
        return ""


def _rounds(instr: Instruction) -> bool:
    """A float is rounded to an integer."""
    return instr.opcode in ("fptosi", "fptoui") or (instr.is_call and (instr.callee_name or "").startswith(_ROUNDS))


def _ends(fn: Function) -> list[Instruction]:
    """The returns of a function that returns something."""
    return [instr for instr in fn.instructions() if instr.opcode == "ret" and instr.operands]


def _joins_zero(phi: Instruction) -> bool:
    """Branches meet here and one brings zero: perhaps the number 0 of a union (a loop's sum starts from it as well)."""
    if not any(isinstance(o, ConstZero) or (isinstance(o, ConstFloat) and not o.value) for o in phi.operands):
        return False
    assert phi.block is not None and phi.block.function is not None
    blocks = phi.block.function.blocks
    here = blocks.index(phi.block)
    return all(blocks.index(block) < here for block in phi.blocks)


def _number_like(value: float) -> bool:
    """A float that nobody writes: its bits are a small integer, or a NaN."""
    return value != value or 0 < abs(value) < sys.float_info.min


__all__ = ["COMPUTED", "MOVED", "Bits"]
