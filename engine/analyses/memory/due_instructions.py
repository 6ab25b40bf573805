"""Which instructions a sweep over a program has to look at again: those that read something that changed since.

An instruction reads its operands, the results of what it calls, and the memory that loads and copies read. The phis of
a loop's header read more (`counters.py`): the steps and the test of the loop, so that they are looked at again when
anything changes that is read in their loop. A store of several pointers side by side reads what they were built of. In
functions with cycles that are no loops a change counts for all instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.objects import PointsTo, bits_of, pointer_places
from irgrad.engine.analyses.memory.offset_arithmetic import destination
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.types import may_hold_pointer

_READS = having("reads")


class DueInstructions:
    """Instructions of the functions that a root reaches, by whether something that they read has changed."""

    def __init__(self, pointers: PointsTo) -> None:
        self._pointers = pointers
        self._users: dict[Value, set[Instruction]] = {}
        self._callers: dict[Function, set[Instruction]] = {}
        self._readers: dict[int, set[Instruction]] = {}  # object -> instructions
        self._rows: list[Instruction] = []
        for fn in pointers.functions:
            self._enter(fn)
        self._due = set(self._rows)

    def _enter(self, fn: Function) -> None:
        loops = get(Loops, fn)
        rows = [instr for instr in fn.instructions() if self._of_use(instr)]
        whole = set(rows) if loops.irreducible else None
        phis: dict[Loop | None, set[Instruction]] = {
            loop: {phi for head in _around(loop) for phi in head.header.phis} for loop in loops.all
        }  # fmt: skip
        for instr in rows:
            loop = None if instr.block is None else loops.of(instr.block)
            for value in self._read_by(instr):
                users = self._users.setdefault(value, whole or set())
                if whole is None:
                    users.add(instr)
                    users |= phis.get(loop, set())
            if instr.is_call:
                for callee in self._pointers.callees(instr) or ():
                    self._callers.setdefault(callee, set()).add(instr)
        self._rows += rows

    def _of_use(self, instr: Instruction) -> bool:
        """Whether an instruction has something to do with integers or addresses."""
        if instr.opcode == "store":
            return may_hold_pointer(instr.operands[0].type)
        number = instr.type.is_ptr or instr.type.is_int
        return number or instr.is_call or instr.opcode == "ret" or bool(self._pointers.of(instr))

    def _read_by(self, instr: Instruction) -> Iterator[Value]:
        """The values that an instruction reads; notes the memory that it reads."""
        of, read = self._pointers.of, 0
        yield from filter(_changes, instr.operands)
        if instr.is_call:
            for arg in instr.args if self._pointers.effect(instr) is not None else ():
                read |= of(arg)
        elif instr.opcode in _READS and instr.operands:
            read = of(instr.operands[0])
        elif instr.opcode == "getelementptr" and (there := destination(instr)) is not None:
            yield there
        elif instr.opcode == "store" and len(pointer_places(instr.operands[0].type)) > 1:
            for part in _built_of(instr.operands[0]):
                yield from filter(_changes, part.operands)
                read |= of(part.operands[0]) if part.opcode in _READS else 0
        for bit in bits_of(read):
            self._readers.setdefault(bit, set()).add(instr)

    def __iter__(self) -> Iterator[Instruction]:
        """One sweep: the instructions to look at, in order."""
        due = self._due
        for instr in self._rows:
            if instr in due:
                due.remove(instr)
                yield instr

    def value(self, value: Value) -> None:
        """More is known of a value."""
        self._due |= self._users.get(value, set())

    def returned(self, callee: Function) -> None:
        """More is known of the result of a function."""
        self._due |= self._callers.get(callee, set())

    def stored(self, container: int) -> None:
        """More is known of what an object holds."""
        self._due |= self._readers.get(container, set())

    def readers(self, container: int) -> set[Instruction]:
        """The instructions that read what an object holds."""
        return self._readers.get(container, set())

    def changed(self, instructions: Iterable[Instruction]) -> None:
        """More is known of what these instructions read."""
        self._due.update(instructions)


def _changes(value: Value) -> bool:
    """Whether more may be known of a value later."""
    return isinstance(value, Instruction | Argument) and not value.type.is_float


def _around(loop: Loop | None) -> Iterator[Loop]:
    """A loop and those around it."""
    while loop is not None:
        yield loop
        loop = loop.parent


def _built_of(value: Value) -> Iterator[Instruction]:
    """What a value of several pointers side by side is built of: those that are of several themselves."""
    work, seen = [value], set[Value]()
    while work:
        part = work.pop()
        if isinstance(part, Instruction) and part not in seen and len(pointer_places(part.type)) > 1:
            seen.add(part)
            work += part.operands
            yield part
