"""Time levels: two buffers that change places after each step become the rows of the tape.

A step reads one buffer through a stencil and fills the other, then they change places. What a step reads is taped,
since the step after next overwrites it, and is what the step before has stored: so each number was stored twice. Here
the steps work on the rows of the tape itself,

    step t      reads row t, stores row t + 1 ; the edge cells of row t + 1, which no step stores, come from row t - 1

and before the first step row 0 is copied from the buffer, after the last one both buffers get what they would hold.
Shadows are not concerned: they still change places.

Nothing else in the loop may touch the buffers, and the steps must all have the same length.

Where the rows are more than a cache holds, and a step computes nothing but sums and products of the row before, only
every fourth row is kept. The others share three rows, which the reverse sweep fills again, four steps at a time:
running three steps of four twice costs less than to write a tape to memory and to read it (measured: half, on 8 MB).

Without this, `benchmarks.run burgers-swap` takes 1.35 of the time, with 3.3 times the tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.schedule.cells import Cells, change_places

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

FARTHEST = 4096  # bytes between a buffer's start and the first cell
CHEAP = 24  # operations of a step on one cell that are worth doing twice

_FLOAT_ARITHMETIC = having("float_arithmetic")


class Levels:
    """The two buffers of a loop `steps` around the stencil `inner`: the one that is read, the one that is stored to.

    low: bytes from a buffer's pointer to cell 0 of a row; first: the cell that the first iteration stores
    """

    def __init__(self, steps: Loop, inner: Loop, cells: Cells, buffers: tuple[Instruction, Instruction]) -> None:
        self.steps = steps
        self.inner = inner
        self.span = cells.span
        self.size = ty.store_size(cells.lowest.type)
        self.read, self.stored = buffers
        self.align = cells.lowest.align
        self.low = 0
        self.first = 0
        self.guards: list[tuple[Instruction, bool]] = []
        self.result: Value | None = None  # what a step stores
        self.cells: dict[Instruction, int] = {}  # what it reads

    def order(self) -> list[Instruction]:
        """What a step computes for a cell, operands first."""
        order: list[Instruction] = []
        for block in self.inner.blocks:
            order += block.instructions
        wanted: set[Value] = {self.result}  # type: ignore[arg-type]
        for instr in reversed(order):
            if instr in wanted and instr not in self.cells:
                wanted.update(data(instr))
        return [instr for instr in order if instr in wanted]

    def outside(self) -> list[Value]:
        """What that takes from in front of the steps."""
        mine = self.order()
        parts = [o for i in mine if i not in self.cells for o in data(i)]
        return [v for v in dict.fromkeys([self.result, *parts]) if v is not None and v not in set(mine)]


def find_levels(
    facts: ReverseFacts, known: Mapping[Instruction, Cells], cells: Cells, inner: Loop
) -> Levels | None:
    """The levels whose older one the loads of a group read; None when the loop is another or does more. `known`: the
    groups of the function."""
    steps = inner.parent
    if facts.caller_tape or cells.entering is not None or steps is None or steps.parent is not None:
        return None
    if steps.children != [inner] or facts.chain(inner) != [steps, inner] or steps.preheader is None:
        return None
    if steps.exiting != steps.latches or len(steps.exits) != 1 or facts.cfg.preds(steps.exits[0]) != steps.latches:
        return None
    if inner.preheader is None or not cells.lowest.type.is_float:
        return None
    base, form = facts.induction.address(cells.lowest.operands[0])
    other = _other(steps, base)
    if other is None or not isinstance(base, Instruction) or not change_places(facts, base, other):
        return None
    found = Levels(steps, inner, cells, (base, other))
    found.low = form.const
    if form.terms != {inner: found.size} or not 0 <= form.const <= FARTHEST:
        return None
    guards = _guards(facts, steps, inner)
    if guards is None or not _only_these(facts, found):
        return None
    found.guards = guards
    found.cells = {key: known[key].shift for key in cells.keys}
    if not _cheap(facts, found):
        found.result = None
    return found


def _other(steps: Loop, phi: Value) -> Instruction | None:
    """The header phi that a header phi changes places with."""
    if not isinstance(phi, Instruction) or phi.opcode != "phi" or phi.block is not steps.header:
        return None
    other = phi.operands[phi.blocks.index(steps.latches[0])]
    if not isinstance(other, Instruction) or other is phi or other.opcode != "phi" or other.block is not steps.header:
        return None
    return other if other.operands[other.blocks.index(steps.latches[0])] is phi else None


def _guards(facts: ReverseFacts, steps: Loop, inner: Loop) -> list[tuple[Instruction, bool]] | None:
    """What decides, before the first step, whether a step runs the inner loop; None if it is not decided then."""
    found: list[tuple[Instruction, bool]] = []
    block = inner.preheader
    while block is not None and block is not steps.header:
        above = facts.dom.idom(block)
        if above is None:
            return None
        end = above.terminator
        if end.opcode != "br" or facts.cfg.preds(block) != [above]:
            return None
        if end.operands:
            test = end.operands[0]
            if not isinstance(test, Instruction) or test.opcode != "icmp" or steps.contains(test.block):
                return None
            found.append((test, end.blocks[0] is block))
        block = above
    return found


def _only_these(facts: ReverseFacts, levels: Levels) -> bool:
    """Whether the loads of one row and the stores of the next are all that a step does with the buffers."""
    pointers, size, span = facts.unit.pointers, levels.size, levels.span
    objects = pointers.of(levels.read) | pointers.of(levels.stored)
    stores = 0
    for block in levels.steps.blocks:
        for instr in block.instructions:
            if instr.opcode in ("load", "store"):
                place = instr.operands[instr.opcode == "store"]
                value = instr if instr.opcode == "load" else instr.operands[0]
                base, form = facts.induction.address(place)
                if base not in (levels.read, levels.stored):
                    if objects & pointers.of(place):
                        return False
                    continue
                cell, rest = divmod(form.const - levels.low, size)
                inside = levels.inner.contains(block)
                terms = {levels.inner: size} if inside else {}
                if form.terms != terms or rest or not 0 <= cell <= span or value.type.is_aggregate:
                    return False
                if ty.store_size(value.type) != size or instr.volatile or instr.ordering:
                    return False
                if instr.opcode == "load":
                    if base is not levels.read or not facts.dom.dominates(levels.inner.preheader, block):  # type: ignore[arg-type]
                        return False
                    continue
                if base is not levels.stored or not inside or not facts.dom.dominates(block, levels.inner.latches[0]):
                    return False
                stores, levels.first, levels.result = stores + 1, cell, value
            elif _touches(facts, instr, objects) or not _address_only(levels, instr):
                return False
    return stores == 1 and levels.inner.exiting == levels.inner.latches


def _cheap(facts: ReverseFacts, levels: Levels) -> bool:
    """Whether a cell can be computed again from the row before by little arithmetic."""
    seen: set[Value] = set()
    work = [levels.result]
    while work:
        value = work.pop()
        if value in seen or not isinstance(value, Instruction) or not levels.steps.contains(value.block):
            continue
        seen.add(value)
        if value in levels.cells:
            continue
        if not levels.inner.contains(value.block) or not value.type.is_float:
            return False
        if not (value.opcode in _FLOAT_ARITHMETIC and value.traits.cost == 1) and not _fused(value):
            return False
        work += data(value)
    return len(seen) <= CHEAP


def _fused(value: Instruction) -> bool:
    return value.is_call and (value.callee_name or "").startswith(("llvm.fmuladd.", "llvm.fma."))


def _touches(facts: ReverseFacts, instr: Instruction, objects: int) -> bool:
    pointers = facts.unit.pointers
    return bool((pointers.instr_reads(instr) | pointers.instr_writes(instr)) & objects)


def _address_only(levels: Levels, instr: Instruction) -> bool:
    """Whether an instruction does nothing with pointers but address arithmetic."""
    if instr.opcode in ("getelementptr", "phi"):
        return True
    return not instr.type.is_ptr and not any(operand.type.is_ptr for operand in data(instr))


def data(instr: Instruction) -> list[Value]:
    """The operands of an instruction, apart from the function that it calls."""
    return instr.args if instr.is_call else instr.operands
