"""Loads of one loop that read neighbouring cells of the same memory: u[i-1], u[i], u[i+1].

While the loop runs, nobody writes that memory, so what iteration i reads as u[i+1] is what iteration i+2 reads as
u[i-1]. Saved one by one, each load would have a tape array of its own; as a group they share one array of cells.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import INT_BINARY, Block, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.loops import Loop
    from irgrad.engine.transforms.reverse import Reverse

ADDRESS = INT_BINARY | frozenset(("getelementptr", "sext", "zext", "trunc"))
WIDEST = 16  # cells between the first and the last load of a group


class Cells:
    """Where a load stands in its group: cell `shift` of iteration 0, the array having `span` more cells than
    iterations."""

    __slots__ = ("highest", "lowest", "members", "shift", "span")

    def __init__(
        self, shift: int, span: int, members: tuple[Instruction, ...], ends: tuple[Instruction, Instruction]
    ) -> None:
        self.shift = shift
        self.span = span
        self.members = members
        self.lowest, self.highest = ends


def find_cells(owner: Reverse) -> dict[Instruction, Cells]:
    """The groups of two and more loads whose memory is overwritten later."""
    groups: dict[Hashable, list[tuple[int, Instruction]]] = {}
    for block in owner.cfg.rpo:
        loop = owner.loops.of(block)
        if loop is None or owner.storage.top(loop) is None or not _runs_whole(owner, loop, block):
            continue
        for instr in block.instructions:
            if instr.opcode == "load" and owner.clobber.clobbered(instr) and not instr.type.is_aggregate:
                place = cell_of(owner, loop, instr)
                if place is not None and _simple(instr.operands[0], loop):
                    groups.setdefault(place[0], []).append((place[1], instr))
    found: dict[Instruction, Cells] = {}
    for members in groups.values():
        low, high = min(at for at, _ in members), max(at for at, _ in members)
        if len(members) > 1 and high - low <= WIDEST:
            loads = tuple(load for _, load in members)
            ends = (min(members, key=lambda m: m[0])[1], max(members, key=lambda m: m[0])[1])
            for at, load in members:
                found[load] = Cells(at - low, high - low, loads, ends)
    return found


def _runs_whole(owner: Reverse, loop: Loop, block: Block) -> bool:
    """Whether every iteration runs the block, so that its loads may be done at the entry for the first one."""
    return loop.latch is not None and loop.exiting == [loop.latch] and owner.dom.dominates(block, loop.latch)


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


def at_entry(owner: Reverse, b: Builder, loop: Loop, value: Value) -> Value:
    """A `_simple` value as it is in the first iteration, computed in front of the loop, in the primal sweep."""
    if not isinstance(value, Instruction) or not loop.contains(value.block):
        return owner.sweep.value(value)
    if value.opcode == "phi":
        return owner.sweep.value(owner.entering(value))
    operands = [at_entry(owner, b, loop, o) for o in value.operands]
    return b.insert(Instruction(value.opcode, value.type, operands, flags=value.flags, elem=value.elem))


def _written(owner: Reverse, block: Block, objects: int, base: Value) -> bool:
    """Whether a block may write the memory at `base`, pointers that change places apart."""
    for _, writer, mask in owner.clobber.writers[block]:
        if mask & objects and not (
            writer.opcode == "store" and _change_places(owner, base, owner.induction.address(writer.operands[1])[0])
        ):
            return True
    return False


def _change_places(owner: Reverse, a: Value, b: Value) -> bool:
    """Two header phis of one loop that hand each other's value on, from starts in different objects: never equal.

    The phis of a set whose values at the latch are a permutation of the set hold pairwise different pointers in every
    iteration, if they do in the first (buffers swapped after each time step).
    """
    if a is b or not (isinstance(a, Instruction) and isinstance(b, Instruction)):
        return False
    loop = owner.loops.of(a.block) if a.block is not None else None
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
    pointers, seen = owner.unit.pointers, 1
    for member in members:
        start = pointers.of(owner.entering(member))
        if not start or start & seen:
            return False
        seen |= start
    return True


def cell_of(owner: Reverse, loop: Loop, load: Instruction) -> tuple[Hashable, int] | None:
    """(group, cell) of a load that moves on by one cell an iteration over memory that its loop does not write."""
    base, form = owner.induction.address(load.operands[0])
    size = ty.store_size(load.type)
    if form.terms.get(loop) != size or load.volatile or load.ordering:
        return None
    if isinstance(base, Instruction) and loop.contains(base.block):
        return None
    if any(isinstance(s, Instruction) and loop.contains(s.block) for s in form.terms if isinstance(s, Value)):
        return None
    objects = owner.unit.pointers.of(load.operands[0])
    masks = owner.clobber.block_masks
    if not objects or any(masks[b] & objects and _written(owner, b, objects, base) for b in loop.blocks):
        return None
    at, rest = divmod(form.const, size)
    key = (loop, base, load.type, rest, frozenset((id(s), c) for s, c in form.terms.items()))
    return key, at
