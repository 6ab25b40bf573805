"""Which values may flow into what a caller is told: its memory, what is printed, how often loops that do so run.

A sum that flows nowhere else than into derivatives may be taken in any order (`reductions.py`); one that the caller is
told, through any number of variables, arrays, calls and copies, keeps the order of the program, so that values are
bitwise those of the function. The analysis goes backwards from what leaves the function, over the points-to sets, with
no regard to order.
"""

from __future__ import annotations

from collections.abc import Iterator

from irgrad.engine.analyses.memory.modref import own_reads_writes
from irgrad.engine.analyses.memory.objects import PointsTo, function_of
from irgrad.engine.ir.model import Argument, Function, Instruction, Value

__all__ = ["delivered"]

_LOCAL = ("alloca", "heap", "function")


def delivered(pointers: PointsTo, silent: int) -> set[Value]:
    """The instructions and parameters whose values the caller of the root may be told.

    silent: objects whose final contents it does not ask for
    """
    return _Delivered(pointers, silent).values


class _Delivered:
    def __init__(self, pointers: PointsTo, silent: int) -> None:
        self.pointers = pointers
        self.silent = silent
        self.values: set[Value] = set()
        self.work: list[Value] = []
        self.memory = 0  # objects whose contents flow into what is told
        self.writers = [(mask, i) for i in self._instructions() if (mask := own_reads_writes(pointers, i)[1])]
        self.callers: dict[Function, list[Instruction]] = {}
        for instr in self._instructions():
            for callee in (pointers.callees(instr) or ()) if instr.is_call else ():
                self.callers.setdefault(callee, []).append(instr)
        self._start()
        while self.work:
            self._from(self.work.pop())

    def _instructions(self) -> Iterator[Instruction]:
        return (instr for fn in self.pointers.functions for instr in fn.instructions())

    def _start(self) -> None:
        outside = 1
        for obj in self.pointers.objects:
            outside |= 0 if obj.kind in _LOCAL else 1 << obj.index
        outside = self.pointers.reachable(outside | self.pointers.escaped_mask)
        told = [i for i in self._instructions() if self._tells(i, outside)]
        if not told:
            return
        for instr in told:
            self._operands(instr)
        for instr in self._instructions():  # what decides whether those run
            if instr.is_terminator and instr.opcode != "ret":
                self._operands(instr)

    def _tells(self, instr: Instruction, outside: int) -> bool:
        """Whether an instruction hands something to the caller, or to the world."""
        if instr.opcode == "store" and not (instr.volatile or instr.ordering):
            objects = self.pointers.of(instr.operands[1])
            return bool(objects & ~self.silent or not objects) and bool(self.pointers.expand(objects) & outside)
        if instr.is_call:
            effect = self.pointers.effect(instr)
            if effect is None:
                return not self.pointers.callees(instr)
            if effect.nothing or effect.allocates or effect.frees is not None:
                return False
            if effect.inactive or not effect.writes or effect.reads is None:
                return not (instr.callee_name or "").startswith("llvm.")
        return bool(own_reads_writes(self.pointers, instr)[1] & outside)

    def _operands(self, instr: Instruction) -> None:
        self.work += [v for v in instr.operands if isinstance(v, Instruction | Argument) and v not in self.values]

    def _from(self, value: Value) -> None:
        if value in self.values:
            return
        self.values.add(value)
        if isinstance(value, Argument):
            calls = self.callers.get(value.function, ()) if value.function is not None else ()
            self.work += [call.args[value.index] for call in calls if value.index < len(call.args)]
        if not isinstance(value, Instruction):
            return
        self._operands(value)
        if value.opcode == "va_arg":
            for call in self.callers.get(function_of(value), ()):
                self._operands(call)
        if value.is_call:
            for callee in self.pointers.callees(value) or ():
                for block in callee.blocks:
                    if block.terminator.opcode == "ret":
                        self._operands(block.terminator)
        self._contents(own_reads_writes(self.pointers, value)[0])

    def _contents(self, mask: int) -> None:
        """What is in these objects flows on: whatever is written there does."""
        while fresh := mask & ~self.memory:
            self.memory |= fresh
            found = [instr for wrote, instr in self.writers if wrote & fresh]
            self.writers = [(wrote, instr) for wrote, instr in self.writers if not wrote & fresh]
            for instr in found:
                self._operands(instr)
                mask |= own_reads_writes(self.pointers, instr)[0]
