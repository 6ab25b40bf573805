"""The bits of floats in integer code: where they are computed with, and where that comes back as a float.

Integers that only move a float are followed as that float. Arithmetic on its bits is not: a tangent does not go through
`mul i64`. Most of it needs no derivative (a hash, a comparison, an exponent taken out by a shift: all constant almost
everywhere). What does come back as a float, or overwrites one, has a derivative that nothing here knows, so it is found
by following such integers forwards through values, calls and memory, and refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.kinds import CONFLICT
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import INT_BINARY, Constant, ConstInt, Function, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity import Activity

HELD, MOVED, COMPUTED = 1, 2, 4
"""A set of these: read from memory that may hold something else (a union); the bits of a float; arithmetic was done."""

_MOVES = frozenset(
    "phi select freeze zext sext trunc bitcast extractvalue insertvalue extractelement insertelement "
    "shufflevector".split()
)
_MERGES = frozenset(("phi", "select", "trunc"))
_POINTERS = frozenset(("inttoptr", "ptrtoint", "ptrtoaddr", "addrspacecast"))
_COUNTS = ("llvm.ct", "llvm.scmp.", "llvm.ucmp.", "llvm.is.constant", "llvm.expect")  # constant almost everywhere
_MANTISSA = {16: 7, 32: 23, 64: 52, 80: 64, 128: 112}


class Bits:
    """`found`: where integer arithmetic on the bits of a varied float makes a useful float, each with the reason."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._pointers = activity.pointers
        self._state: dict[Value, int] = {}
        self._memory: dict[int, int] = {}  # object -> state of the integers stored in it
        self._returns: dict[Function, int] = {}
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
                self._set(instr, HELD)  # LLVM makes such casts when it takes a union apart
        elif op == "ret":
            self._return(instr)
        elif instr.is_call:
            self._call(instr)
        elif op in INT_BINARY:
            state = self._of(instr)
            if state and not _constant_almost_everywhere(instr):
                self._set(instr, state if self._activity.flow.carries(instr) else state | COMPUTED)
        elif op in _POINTERS:
            state = self._of(instr)
            self._set(instr, state | COMPUTED if state else 0)
        elif op in _MOVES and not instr.type.scalar.is_fp:
            self._set(instr, self._of(instr, 1 if op == "select" else 0))

    def _of(self, instr: Instruction, first: int = 0) -> int:
        values = instr.operands[first:]
        state = self._any(values)
        if state & MOVED and (
            instr.opcode in _MERGES or (instr.opcode == "or" and not isinstance(values[-1], Constant))
        ):
            return state & ~MOVED | HELD  # perhaps the other member of a union
        return state

    def _any(self, values: list[Value]) -> int:
        state = 0
        for value in values:
            state |= self._state.get(value, 0)
        return state

    def _load(self, instr: Instruction) -> None:
        if not instr.type.scalar.is_int:
            return
        address = instr.operands[0]
        if self.float_memory(address, ty.store_size(instr.type), varied=True):
            # Buffers of the signature hold one type; other memory may be a union whose other member this is.
            given = all(o.kind == "argument" for o in self._activity.flow.objects(address))
            self._set(instr, MOVED if given else HELD)
        mask = self._pointers.of(address) if self._memory else 0
        for bit, state in self._memory.items():
            self._set(instr, state if mask >> bit & 1 else 0)

    def _store(self, instr: Instruction) -> None:
        value, address = instr.operands
        state = self._state.get(value, 0)
        if state & COMPUTED or (state and ty.store_size(value.type) == 1):
            for obj in self._objects(address):
                before = self._memory.get(obj, 0)
                if before | state != before:
                    self._memory[obj] = before | state
                    self._again = True

    def _objects(self, address: Value) -> Iterator[int]:
        from irgrad.engine.analyses.objects import bits_of

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
        if known or call.type is ty.VOID or call.type.is_fp or (call.callee_name or "").startswith(_COUNTS):
            return
        state = self._any(call.args)
        moved = (call.callee_name or "").startswith("llvm.fsh") and self._activity.flow.carries(call)
        self._set(call, 0 if not state else state if moved else state | COMPUTED)

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
        if not state:
            return ""
        if op == "bitcast" and instr.type.is_fp and state & COMPUTED and self._activity.useful(instr):
            return "integer arithmetic on the bits of an active float makes a float again"
        if op in ("sitofp", "uitofp") and state & MOVED and self._activity.useful(instr):
            return "the bits of an active float are used as a number"
        if op == "store" and (state & COMPUTED or ty.store_size(instr.operands[0].type) == 1):
            size = ty.store_size(instr.operands[0].type)
            if self.float_memory(instr.operands[1], size, varied=False):
                what = "integer arithmetic on the bits of an active float makes a float again"
                return what if state & COMPUTED else "an active float is copied byte by byte"
        return ""


def _constant_almost_everywhere(instr: Instruction) -> bool:
    """Only sign and exponent are left: shifted right past the mantissa, or everything else masked out."""
    mantissa = _MANTISSA.get(8 * ty.store_size(instr.type.scalar), 0)
    by = instr.operands[1]
    if not mantissa or not isinstance(by, ConstInt):
        return False
    if instr.opcode in ("lshr", "ashr"):
        return by.value >= mantissa
    return instr.opcode == "and" and by.value & ((1 << mantissa) - 1) == 0


__all__ = ["COMPUTED", "MOVED", "Bits"]
