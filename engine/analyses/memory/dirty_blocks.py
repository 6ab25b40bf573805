"""Which blocks a sweep over a program has to look at again: those that read something that changed since.

An instruction reads its operands, the results of what it calls, and the memory that loads and copies read. The phis of
a loop's header read more (`counters.py`): the steps and the test of the loop, so that the header is looked at again
with each block of its loop. What is built of parts (vectors, structs) is followed through several instructions; in
functions with such values of several pointers, and with cycles that are no loops, a change counts for all blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.objects import PointsTo, bits_of, pointer_places
from irgrad.engine.analyses.memory.offset_arithmetic import destination
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Block, Function, Instruction, Value
from irgrad.engine.ir.opcodes import having

_READS = having("reads")
_WORD = 8  # bytes of a pointer


class DirtyBlocks:
    """Blocks of the functions that a root reaches, by when something that they read has changed."""

    def __init__(self, pointers: PointsTo) -> None:
        self._pointers = pointers
        self._blocks = [block for fn in pointers.functions for block in fn.blocks]
        self._clock = 1
        self._changed = dict.fromkeys(self._blocks, 1)  # when something that it reads did
        self._visited = dict.fromkeys(self._blocks, 0)
        self._users: dict[Value, dict[Block, None]] = {}
        self._callers: dict[Function, dict[Block, None]] = {}
        self._readers: dict[int, dict[Block, None]] = {}  # object -> blocks
        for fn in pointers.functions:
            loops = get(Loops, fn)
            whole = dict.fromkeys(fn.blocks) if loops.irreducible or any(map(_of_parts, fn.instructions())) else None
            for block in fn.blocks:
                heads = dict.fromkeys(_headers(loops.of(block)))
                self._learn(block, *((whole, whole) if whole else (heads, {block: None} | heads)))

    def _learn(self, block: Block, heads: dict[Block, None], around: dict[Block, None]) -> None:
        """Note what a block reads: `around` is looked at again when that changes, `heads` when it changes in the block
        itself, before it is read there."""
        of, users, read = self._pointers.of, self._users, 0
        for instr in block.instructions:
            for operand in instr.operands:
                if isinstance(operand, Instruction | Argument) and not operand.type.is_float:
                    before = isinstance(operand, Instruction) and operand.block is block and instr.opcode != "phi"
                    users.setdefault(operand, {}).update(heads if before else around)
            if instr.is_call:
                for callee in self._pointers.callees(instr) or ():
                    self._callers.setdefault(callee, {})[block] = None
                if self._pointers.effect(instr) is not None:
                    for arg in instr.args:
                        read |= of(arg)
            elif instr.opcode in _READS and instr.operands:
                read |= of(instr.operands[0])
            elif instr.opcode == "getelementptr" and (there := destination(instr)) is not None:
                users.setdefault(there, {}).update(around)
        for bit in bits_of(read):
            self._readers.setdefault(bit, {}).update(around)

    def __iter__(self) -> Iterator[Block]:
        """One sweep: the blocks to look at, in order."""
        for block in self._blocks:
            if self._changed[block] > self._visited[block]:
                self._visited[block] = self._clock
                self._clock += 1
                yield block

    def value(self, value: Value) -> None:
        """More is known of a value."""
        self._mark(self._users.get(value, ()))

    def returned(self, callee: Function) -> None:
        """More is known of the result of a function."""
        self._mark(self._callers.get(callee, ()))

    def stored(self, container: int) -> None:
        """More is known of what an object holds."""
        self._mark(self._readers.get(container, ()))

    def readers(self, container: int) -> dict[Block, None]:
        """The blocks that read what an object holds."""
        return self._readers.get(container, {})

    def changed(self, blocks: Iterable[Block]) -> None:
        """More is known of what these blocks read."""
        self._mark(blocks)

    def _mark(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._changed[block] = self._clock


def _headers(loop: Loop | None) -> Iterator[Block]:
    """The headers of a loop and of those around it."""
    while loop is not None:
        yield loop.header
        loop = loop.parent


def _of_parts(instr: Instruction) -> bool:
    """Whether a value carries several pointers side by side."""
    type_ = instr.type
    plain = type_.is_ptr or type_.is_float or (type_.is_int and ty.size_of(type_) <= _WORD)
    return not plain and len(pointer_places(type_)) > 1
