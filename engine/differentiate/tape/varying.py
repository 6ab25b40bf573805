"""Over which loops of a nest a saved value changes: an array of it needs a place for each of their iterations only.

A value inside a loop is the same in each of the loop's iterations where everything that it hangs on is: what is made
outside of the loop, iteration numbers of loops inside it, operations on such values, and loads of memory that nothing
in the loop writes. The row of a matrix that every column is multiplied with is one row of the tape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir.model import Argument, Constant, Instruction, Value
from irgrad.engine.ir.opcodes import PURE

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.analyses.evolution.clobber import Clobber
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

__all__ = ["Varying"]

MANY = 64
"""Values looked at for one answer; one that hangs on more is taken to change."""


class Varying:
    """The answers for one function."""

    def __init__(self, facts: ReverseFacts) -> None:
        self.facts = facts
        self._written: dict[Loop, list[tuple[Instruction, int]]] = {}
        self._same: dict[tuple[Instruction, Loop], bool] = {}

    def over(self, value: Instruction, level: Loop) -> list[Loop]:
        """Of the loops of the flat nest down to `level`, those in whose iterations a value of that level differs: one
        at least."""
        chain = self.facts.chain(level)
        return [loop for loop in chain if not self.same(value, loop)] or chain[:1]

    def streamed(self, load: Instruction) -> bool:
        """Whether a load in an innermost loop reads another address, which only counters decide, in each iteration of
        each of the loops around it: memory that is passed through once, as no table is that data leads into."""
        loop = level = self.facts.level(load)
        if level is None or level.children:
            return False
        while loop is not None and not self.same(load, loop):
            loop = loop.parent
        return loop is None and self._counted(load.operands[0])

    def _counted(self, address: Value) -> bool:
        seen = {address}
        work = [address]
        while work:
            here = work.pop()
            if not isinstance(here, Instruction) or self.facts.level(here) is None:
                continue
            if here.opcode == "phi" and self.facts.recurrence(here) is not None:
                continue
            if here.opcode not in PURE or len(seen) > MANY:
                return False
            work += [part for part in here.operands if part not in seen]
            seen.update(here.operands)
        return True

    def same(self, value: Instruction, loop: Loop) -> bool:
        """Whether a value has, in each iteration of a loop around it, what it had in the first: for each iteration of
        the loops between."""
        key = (value, loop)
        if key not in self._same:
            self._same[key] = self._follow(value, loop)
        return self._same[key]

    def _follow(self, value: Instruction, loop: Loop) -> bool:
        seen = {value}
        work = [value]
        while work:
            here = work.pop()
            parts = self._parts(here, loop)
            if parts is None:
                return False
            for part in parts:
                if isinstance(part, Constant | Argument):
                    continue
                if not isinstance(part, Instruction) or not self._ends_alike(part, here, loop):
                    return False
                if loop.contains(part.block) and part not in seen:
                    seen.add(part)
                    work.append(part)
            if len(seen) > MANY:
                return False
        return True

    def _parts(self, value: Instruction, loop: Loop) -> list[Value] | None:
        """What a value of the loop hangs on; None where that is more than other values."""
        op = value.opcode
        if op == "phi":
            around = self.facts.level(value)
            header = around is not None and around.header is value.block
            if around is loop and header:
                return None
            return value.operands if header or len(value.operands) == 1 else None
        if op == "load":
            return None if value.volatile or value.ordering or self._changes(value, loop) else value.operands
        if op in PURE:
            return value.operands
        return value.args if op == "call" and pure_call(value) else None

    def _changes(self, load: Instruction, loop: Loop) -> bool:
        """Whether something in the loop may write what a load reads."""
        facts: ReverseFacts = self.facts
        clobber: Clobber = facts.clobber
        objects = clobber.pointers.expand(clobber.pointers.of(load.operands[0]))
        if not objects:
            return True
        if loop not in self._written:
            found = [(i, clobber.pointers.instr_writes(i)) for block in loop.blocks for i in block.instructions]
            self._written[loop] = [(instr, mask) for instr, mask in found if mask]
        return any(mask & objects and not self._apart(load, w, loop) for w, mask in self._written[loop])

    def _apart(self, load: Instruction, writer: Instruction, loop: Loop) -> bool:
        """Whether a writer leaves what a load of the same loop reads."""
        clobber: Clobber = self.facts.clobber
        if clobber.apart(load, writer):
            return True
        simple = writer.opcode == "store" and not writer.volatile and not writer.ordering
        return simple and clobber.overwrites.apart_within(load, writer, loop)

    def _ends_alike(self, part: Instruction, user: Instruction, loop: Loop) -> bool:
        """A value that an inner loop leaves behind is that of its last iteration: of a loop of equal length in each
        iteration of this one."""
        for left in self._left(part, user):
            count = self.facts.trip(left)
            if count is None or any(isinstance(use, Instruction) and loop.contains(use.block) for use in count.uses):
                return False
        return True

    def _left(self, part: Instruction, user: Instruction) -> list[Loop]:
        level = self.facts.level(part)
        return [found for found in level.ancestors() if not found.contains(user.block)] if level is not None else []
