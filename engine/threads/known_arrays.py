"""Arrays whose address lies in memory: which one it is, and how many bytes it has, is asked when the program runs.

A reverse sweep reads the addresses of vectors that were swapped, or that each step reserves anew, from its tape. Where
the adjoints of arrays begin as zeros, in the tape or behind an argument, their addresses and bytes are noted in a list:

    node     { node before, address, bytes }
    list     { newest node, node that was found last }

`i64 @irgrad.team.array(ptr list, ptr address, ptr low)` tells the bytes of the noted array that an address leads into,
and where that begins. Of others it says more than there ever are (`NOWHERE`), so that there is no memory for copies of
them and one thread runs the loop, which is said; null leads to none. Sweeps find arrays in the order of the list, or
near.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, ConstZero, Function, Instruction, Module, Value, is_zero
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.threads.shared_updates import bytes_of_array

__all__ = ["ARRAY", "ARRAYS_TEXT", "NOWHERE", "KnownArrays"]

NOWHERE = 1 << 50
"""Bytes that no array has, and that sixteen copies of some arrays may have."""
ARRAY = "irgrad.team.array"
ARRAYS_TEXT = f"""
define internal i64 @{ARRAY}(ptr %list, ptr %address, ptr %low) noinline nounwind {{
entry:
  %at = ptrtoint ptr %address to i64
  %lastp = getelementptr i8, ptr %list, i64 8
  %last = load ptr, ptr %lastp
  br label %look
look:
  %node = phi ptr [ %last, %entry ], [ %before, %next ], [ %newest, %again ]
  %first = phi i1 [ true, %entry ], [ %first, %next ], [ false, %again ]
  %end = icmp eq ptr %node, null
  br i1 %end, label %ended, label %ask
ask:
  %basep = getelementptr i8, ptr %node, i64 8
  %base = load ptr, ptr %basep
  %bytesp = getelementptr i8, ptr %node, i64 16
  %bytes = load i64, ptr %bytesp
  %from = ptrtoint ptr %base to i64
  %inside = sub i64 %at, %from
  %good = icmp ult i64 %inside, %bytes
  br i1 %good, label %found, label %next
next:
  %before = load ptr, ptr %node
  br label %look
ended:
  br i1 %first, label %again, label %nowhere
again:
  %newest = load ptr, ptr %list
  br label %look
found:
  store ptr %node, ptr %lastp
  store ptr %base, ptr %low
  ret i64 %bytes
nowhere:
  store ptr %address, ptr %low
  %null = icmp eq ptr %address, null
  %most = select i1 %null, i64 0, i64 {NOWHERE}
  ret i64 %most
}}
"""
_NODE, _LIST = 24, 16


class KnownArrays:
    """The arrays of a function whose bytes are known where it gets or reserves them."""

    def __init__(self, module: Module, fn: Function, root: Function, bytes_of: Sequence[Bytes | None]) -> None:
        self._module, self._fn = module, fn
        uses = uses_of(fn.blocks)
        made = [i for i in fn.instructions() if (i.opcode == "alloca" and i.block is fn.entry)
                or (i.is_call and i.callee_name == "irgrad.tape.alloc")]  # fmt: skip
        arrays = [*(a for a in fn.args if a.type.is_ptr), *(i for i in made if _begins_as_zeros(i, uses.get(i, ())))]
        known = [(array, bytes_of_array(fn, root, array, bytes_of)) for array in arrays]
        self._arrays = [(array, size) for array, size in known if size is not None]
        self._list: Value | None = None

    def __bool__(self) -> bool:
        return bool(self._arrays)

    @property
    def used(self) -> bool:
        """Whether it was asked for one of them."""
        return self._list is not None

    def array_of(self, call: Instruction, address: Value) -> tuple[Value, Value]:
        """Writes before a call where the array begins that an address leads into, and how many bytes it has."""
        noted = self._list or self._noted()
        low = Builder(self._fn.entry, 0).alloca(ty.PTR)
        at = _before(call)
        ask = declare(self._module, ARRAY, ty.I64, (ty.PTR, ty.PTR, ty.PTR))
        size = at.call(ask, [noted, address, low])
        return at.load(ty.PTR, low, 8), size

    def _noted(self) -> Value:
        """The list, with what is noted in it."""
        first = self._fn.entry.instructions[0]
        at = _before(first)
        newest = self._list = at.alloca(ty.array(_LIST, ty.I8))
        for place in (newest, at.gep(ty.I8, newest, 8)):
            at.store(ConstZero(ty.PTR), place, 8)
        for array, size in self._arrays:
            place = first
            if isinstance(array, Instruction) and array.block is not None:
                place = array.block.instructions[array.block.instructions.index(array) + 1]
            self._note(newest, place, array, size(place))
        return newest

    def _note(self, newest: Value, place: Instruction, array: Value, size: Value) -> None:
        at = _before(place)
        if isinstance(array, Instruction) and array.is_call:  # (many times perhaps)
            node: Value = at.call(array.callee, [array.args[0], ConstInt(ty.I64, _NODE)])
        else:
            node = at.alloca(ty.array(_NODE, ty.I8))
        at.store(at.load(ty.PTR, newest, 8), node, 8)
        at.store(array, at.gep(ty.I8, node, 8), 8)
        at.store(size, at.gep(ty.I8, node, 16), 8)
        at.store(node, newest, 8)


def _begins_as_zeros(memory: Instruction, users: Iterable[Instruction]) -> bool:
    """Whether memory is filled with zeros, and there as long as the function runs."""
    calls = [(u, u.callee_name or "") for u in users if u.is_call]
    zeros = any(name.startswith("llvm.memset.") and u.args[0] is memory and is_zero(u.args[1]) for u, name in calls)
    return zeros and not any(name.startswith("llvm.lifetime.") for _, name in calls)


def _before(place: Instruction) -> Builder:
    assert place.block is not None
    return Builder(place.block, place.block.instructions.index(place))
