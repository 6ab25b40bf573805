"""Loads of one loop that read neighbouring cells of the same memory: u[i-1], u[i], u[i+1].

While the loop runs, nobody writes that memory, so what iteration i reads as u[i+1] is what iteration i+2 reads as
u[i-1]. Saved one by one, each load would have a tape array of its own; as a group they share one array of cells.

Without this, `benchmarks.run burgers-swap` takes 1.85 of the time with 6.5 times the tape, `burgers-copy` keeps twice
as much; without `handed_on` no benchmark takes longer, but `benchmarks.dense adi` keeps 1.1 times as much.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.affine import Scaled
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.ir.opcodes import having

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

Key = tuple["Loop", Hashable, Hashable, int, Hashable]  # loads of one group
ADDRESS = having("subscript")
WIDEST = 16  # cells between the first and the last load of a group


class Cells:
    """Where a load stands in its group: cell `shift` of iteration 0, the array having `span` more cells than
    iterations."""

    __slots__ = ("entering", "highest", "keys", "lowest", "members", "shift", "span")

    def __init__(
        self, shift: int, span: int, members: tuple[Instruction, ...], ends: tuple[Instruction, Instruction]
    ) -> None:
        self.shift = shift
        self.span = span
        self.members = members
        self.lowest, self.highest = ends
        self.entering: Value | None = None  # what cell 0 holds, where it is no memory
        self.keys: list[Instruction] = list(members)  # and carried values


def find_cells(facts: ReverseFacts) -> dict[Instruction, Cells]:
    """The groups of two and more loads whose memory is overwritten later."""
    groups: dict[Key, list[tuple[int, Instruction]]] = {}
    for block in facts.cfg.rpo:
        loop = facts.loops.of(block)
        if loop is None or facts.top(loop) is None or not _runs_whole(facts, loop, block):
            continue
        for instr in block.instructions:
            if instr.opcode == "load" and facts.clobber.clobbered(instr) and not instr.type.is_aggregate:
                place = cell_of(facts, loop, instr)
                if place is not None and _simple(instr.operands[0], loop):
                    groups.setdefault(place[0], []).append((place[1], instr))
    found: dict[Instruction, Cells] = {}
    for (loop, *_), members in groups.items():
        low, high = min(at for at, _ in members), max(at for at, _ in members)
        if len(members) > 1 and high - low <= WIDEST:
            loads = tuple(load for _, load in members)
            ends = (min(members, key=lambda m: m[0])[1], max(members, key=lambda m: m[0])[1])
            for at, load in members:
                found[load] = Cells(at - low, high - low, loads, ends)
            _carried(facts, loop, found)
    return found


def _carried(facts: ReverseFacts, loop: Loop, found: dict[Instruction, Cells]) -> None:
    """Cells that the loop carries from one iteration to the next (LLVM reads u[i+1] once and hands it on as u[i]): the
    phi holds the cell below that of its next value, in the first iteration too, by a load in front of the loop."""
    assert loop.latch is not None and loop.preheader is not None
    waiting, grown = list(loop.header.phis), True
    while grown:
        grown = False
        for phi in waiting:
            latest = phi.operands[phi.blocks.index(loop.latch)]
            cells = found.get(latest) if isinstance(latest, Instruction) else None
            if phi in found or cells is None or cells.shift == 0:
                continue
            if enters_with(facts, loop, facts.entering(phi), cells.lowest, cells.shift - 1):
                found[phi] = Cells(cells.shift - 1, cells.span, cells.members, (cells.lowest, cells.highest))
                keys = [*cells.keys, phi]
                for key in keys:
                    found[key].keys = keys
                grown = True


def handed_on(
    facts: ReverseFacts, known: Mapping[Instruction, Cells], saved: Iterable[Instruction]
) -> dict[Instruction, Cells]:
    """Floats that are saved together with their value in the iteration before (the phi of a recurrence): one array,
    in which the latter is the cell below. `known`: those that have an array already."""
    wanted = dict.fromkeys(saved)
    found: dict[Instruction, Cells] = {}
    for phi in wanted:
        loop = facts.level(phi)
        if phi.opcode != "phi" or loop is None or phi.block is not loop.header or loop.latch is None:
            continue
        latest = phi.operands[phi.blocks.index(loop.latch)]
        if not isinstance(latest, Instruction) or latest.opcode == "phi" or latest not in wanted or latest in found:
            continue
        if not phi.type.is_fp or phi in known or latest in known or facts.level(latest) is not loop:
            continue
        if facts.top(loop) is None or latest.block is None or not _runs_whole(facts, loop, latest.block):
            continue
        for key, shift in ((phi, 0), (latest, 1)):
            found[key] = Cells(shift, 1, (latest,), (latest, latest))
            found[key].entering = facts.entering(phi)
    return found


def enters_with(facts: ReverseFacts, loop: Loop, value: Value, load: Instruction, by: int) -> bool:
    """Whether a value is what the first iteration finds `by` cells behind what `load` reads: loaded in front of the
    loop, not written since."""
    if not isinstance(value, Instruction) or value.opcode != "load" or value.block is None:
        return False
    if value.block is not loop.preheader:
        return False
    if value.type is not load.type or value.volatile or value.ordering:
        return False
    here = facts.clobber.positions[value]
    objects = facts.unit.pointers.of(value.operands[0])
    if any(at > here and mask & objects for at, _, mask in facts.clobber.writers[value.block]):
        return False
    base, form = facts.induction.address(load.operands[0])
    other, place = facts.induction.address(value.operands[0])
    terms = {symbol: factor for symbol, factor in form.terms.items() if symbol is not loop}
    return base is other and place.terms == terms and place.const == form.const + by * ty.store_size(value.type)


def _runs_whole(facts: ReverseFacts, loop: Loop, block: Block) -> bool:
    """Whether every iteration runs the block, so that its loads may be done at the entry for the first one."""
    return loop.latch is not None and loop.exiting == [loop.latch] and facts.dom.dominates(block, loop.latch)


def _simple(value: Value, loop: Loop) -> bool:
    """Whether an address is integer and pointer arithmetic on header phis and values from outside the loop."""
    stack, steps = [value], 0
    while stack:
        value = stack.pop()
        steps += 1
        if not isinstance(value, Instruction) or not loop.contains(value.block):
            continue
        if value.opcode == "phi":
            if value.block is not loop.header:
                return False
        elif value.opcode in ADDRESS and steps < 64:
            stack += value.operands
        else:
            return False
    return True


def _written(facts: ReverseFacts, block: Block, objects: int, base: Value) -> bool:
    """Whether a block may write the memory at `base`, pointers that change places apart."""
    for _, writer, mask in facts.clobber.writers[block]:
        if mask & objects and not (
            writer.opcode == "store" and change_places(facts, base, facts.induction.address(writer.operands[1])[0])
        ):
            return True
    return False


def change_places(facts: ReverseFacts, a: Value, b: Value) -> bool:
    """Two header phis of one loop that hand each other's value on, from starts in different objects: never equal.

    The phis of a set whose values at the latch are a permutation of the set hold pairwise different pointers in every
    iteration, if they do in the first (buffers swapped after each time step).
    """
    if a is b or not (isinstance(a, Instruction) and isinstance(b, Instruction)):
        return False
    loop = facts.loops.of(a.block) if a.block is not None else None
    if a.opcode != "phi" or b.opcode != "phi" or a.block is not b.block or loop is None or loop.header is not a.block:
        return False
    members: list[Instruction] = []
    for first in (a, b):
        phi: Value = first
        while phi not in members:
            if not isinstance(phi, Instruction) or phi.opcode != "phi" or phi.block is not a.block:
                return False
            if loop.latch is None:
                return False
            members.append(phi)
            phi = phi.operands[phi.blocks.index(loop.latch)]
    handed_on = [m.operands[m.blocks.index(loop.latches[0])] for m in members]
    if len(set(handed_on)) != len(members):
        return False
    pointers, seen = facts.unit.pointers, 1
    for member in members:
        start = pointers.expand(pointers.of(facts.entering(member)))
        if not start or start & seen:
            return False
        seen |= start
    return True


def cell_of(facts: ReverseFacts, loop: Loop, load: Instruction) -> tuple[Key, int] | None:
    """(group, cell) of a load that moves on by one cell an iteration over memory that its loop does not write."""
    base, form = facts.induction.address(load.operands[0])
    size = ty.store_size(load.type)
    if form.terms.get(loop) != size or load.volatile or load.ordering:
        return None
    if isinstance(base, Instruction) and loop.contains(base.block):
        return None
    if any(isinstance(s, Scaled) and s.loop is loop for s in form.terms):
        return None
    if any(isinstance(s, Instruction) and loop.contains(s.block) for s in form.terms if isinstance(s, Value)):
        return None
    objects = facts.unit.pointers.of(load.operands[0])
    masks = facts.clobber.block_masks
    if not objects or any(masks[b] & objects and _written(facts, b, objects, base) for b in loop.blocks):
        return None
    at, rest = divmod(form.const, size)
    key = (loop, base, load.type, rest, frozenset((id(s), c) for s, c in form.terms.items()))
    return key, at
