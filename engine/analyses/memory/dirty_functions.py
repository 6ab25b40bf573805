"""Which functions a sweep over a program has to look at again: those that read something that changed since."""

from __future__ import annotations

from collections.abc import Iterator

from irgrad.engine.analyses.memory.objects import PointsTo, bits_of, function_of
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.opcodes import having

_READS = having("reads")


class DirtyFunctions:
    """A function reads its own values, the results of what it calls, and the memory that its loads and copies read."""

    def __init__(self, pointers: PointsTo) -> None:
        self._functions = pointers.functions
        self._clock = 1
        self._changed: dict[Function, int] = dict.fromkeys(pointers.functions, 1)  # when something that it reads did
        self._visited: dict[Function, int] = {}
        self._owner: dict[Value, Function] = {}
        self._callers: dict[Function, dict[Function, None]] = {}
        self._readers: dict[int, list[Function]] = {}  # object -> functions
        for fn in pointers.functions:
            self._owner.update(dict.fromkeys(fn.args, fn))
            read = 0
            for instr in fn.instructions():
                read |= self._reads(pointers, instr, fn)
            for bit in bits_of(read):
                self._readers.setdefault(bit, []).append(fn)

    def _reads(self, pointers: PointsTo, instr: Instruction, fn: Function) -> int:
        if not instr.is_call:
            return pointers.of(instr.operands[0]) if instr.opcode in _READS and instr.operands else 0
        for callee in pointers.callees(instr) or ():
            self._callers.setdefault(callee, {})[fn] = None
        mask = 0
        if pointers.effect(instr) is not None:
            for arg in instr.args:
                mask |= pointers.of(arg)
        return mask

    def __iter__(self) -> Iterator[Function]:
        """One sweep: the functions to look at, in order."""
        for fn in self._functions:
            if self._changed[fn] > self._visited.get(fn, 0):
                self._visited[fn] = self._clock
                self._clock += 1
                yield fn

    def value(self, value: Value) -> None:
        """More is known of a value."""
        fn = self._owner.get(value) if isinstance(value, Argument) else None
        if fn is None and isinstance(value, Instruction):
            fn = function_of(value)
        if fn is not None:
            self._changed[fn] = self._clock

    def returned(self, callee: Function) -> None:
        """More is known of the result of a function."""
        for fn in self._callers.get(callee, ()):
            self._changed[fn] = self._clock

    def stored(self, container: int) -> None:
        """More is known of what an object holds."""
        for fn in self._readers.get(container, ()):
            self._changed[fn] = self._clock
