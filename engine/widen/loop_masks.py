"""Loops that samples leave at different times run until the last sample has left; long sides of branches, if one takes
them.

    loop:  %x = phi [%a, before], [%y, loop]          loop:  %x = phi [%a, before], [%kept, loop]
           ...                                               ...
           br %c, loop, out                                  %kept = select %c, %y, %x
                                                             %more = call @irgrad.any(%c)
                                                             br %more, loop, out

A sample that has left keeps the values with which its last iteration began, and so does that iteration again: what the
loop computes, `%c` included, comes out as it did, and nothing is computed that the sample would not have computed. So
neither faults nor infinities appear that a single call does not have, in derivatives neither. It holds for loops
without side effects; others are left as they are.

A loop that some samples do not enter (`br %g, loop, out` in front of it) runs if one does; the others *borrow* what it
reads from one that does, and their results are not used.

Sides of branches that are too long to be computed for nothing (`batch_flatten`), or that read memory, run if a sample
takes them.

In the function of one sample the markers mean what they do there: `any(c)` is c, `borrow(v, g)` is v.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import PURE, TRAPS
from irgrad.engine.normalise.short_branches import predecessors
from irgrad.engine.widen.if_conversion import pure
from irgrad.engine.widen.uniformity import ANY, BORROW, IGNORED, Uniformity

__all__ = ["mask_loop"]


def mask_loop(module: Module, fn: Function, facts: Uniformity) -> bool:
    """Mask one loop that samples leave, or enter, differently, innermost first. Returns whether there was one that can
    be masked; changes `fn`."""
    loops = get(Loops, fn)
    if loops.irreducible:
        return False
    if any(_mask_exit(module, loop, facts) for loop in reversed(loops.all)):
        return True
    preds = predecessors(fn.blocks)
    if any(_mask_entry(module, loop, preds, facts) for loop in reversed(loops.all)):
        return True
    return any(_mask_sides(module, fn, block, preds, facts) for block in fn.blocks)


def _mask_exit(module: Module, loop: Loop, facts: Uniformity) -> bool:
    latch = loop.latch
    if latch is None or loop.exiting != [latch] or not all(_harmless(i) for b in loop.blocks for i in b.instructions):
        return False
    branch = latch.terminator
    if branch.opcode != "br" or not branch.operands or branch.operands[0] not in facts.varying:
        return False
    b = Builder(latch, at=len(latch.instructions) - 1)
    stays = _condition(b, branch, loop.header)
    for phi in loop.header.phis:
        number = phi.blocks.index(latch)
        phi.operands[number] = b.select(stays, phi.operands[number], phi)
    _uniform(module, b, branch, stays, loop.header)
    return True


def _mask_entry(module: Module, loop: Loop, preds: dict[Block, list[Block]], facts: Uniformity) -> bool:
    before, exits = loop.preheader, loop.exits
    if before is None or len(exits) != 1 or len(preds[before]) != 1 or before.phis:
        return False
    guard, after = preds[before][0], exits[0]
    branch = guard.terminator
    if branch.opcode != "br" or len(branch.blocks) != 2 or branch.operands[0] not in facts.varying:
        return False
    out = branch.blocks[1 - branch.blocks.index(before)]
    region = [before, *loop.blocks, after]
    if out is before or after.successors != [out] or len(preds[after]) != 1 or out in region:
        return False
    if any(b.terminator.operands and b.terminator.operands[0] in facts.varying for b in region):
        return False
    if not all(_harmless(i) and (b is before or i.opcode != "load" or i not in facts.varying) and i.opcode not in TRAPS
               for b in region for i in b.instructions):  # fmt: skip
        return False
    if any(v.type.is_ptr and v in facts.varying and isinstance(v, Instruction) and v.block not in region
           for b in region for i in b.instructions for v in i.operands):  # fmt: skip
        return False  # it is not borrowed, and may be out of bounds for samples that do not enter
    b = Builder(guard, at=len(guard.instructions) - 1)
    enters = _condition(b, branch, before)
    _borrow(module, region, enters)
    b.at = len(guard.instructions) - 1
    _uniform(module, b, branch, enters, before)
    _choose(out, after, guard, enters)
    return True


def _mask_sides(
    module: Module, fn: Function, block: Block, preds: dict[Block, list[Block]], facts: Uniformity
) -> bool:
    branch = block.terminator
    if branch.opcode != "br" or len(set(branch.blocks)) != 2 or branch.operands[0] not in facts.varying:
        return False
    sides = [s if preds[s] == [block] and len(s.successors) == 1 and not s.phis and _is_side(s, facts) else None
             for s in branch.blocks]  # fmt: skip
    ends = [to if side is None else side.successors[0] for side, to in zip(sides, branch.blocks, strict=True)]
    if ends[0] is not ends[1] or block in ends:
        return False
    out = ends[0]
    first = sides[0] or sides[1]
    b = Builder(block, at=len(block.instructions) - 1)
    if first is None:
        return False
    takes = _condition(b, branch, first)
    if None in sides:
        _uniform(module, b, branch, takes, first)
        _choose(out, first, block, takes)
        return True
    second = branch.blocks[1]
    others = b.binary("xor", takes, ConstInt(ty.I1, 1))
    between = Block()
    between.function = fn
    fn.blocks.insert(fn.blocks.index(second), between)
    branch.blocks = [first, between]
    branch.operands[0] = b.call(_marker(module, ANY, (ty.I1,)), [takes])
    first.terminator.blocks = [between]
    m = Builder(between)
    for phi in out.phis:
        number = phi.blocks.index(first)
        phi.operands[number] = m.phi(phi.type, [(phi.operands[number], first), (zero_of(phi.type), block)])
        phi.blocks[number] = between
    m.cond_br(m.call(_marker(module, ANY, (ty.I1,)), [others]), second, out)
    _choose(out, second, between, others)
    return True


def _choose(out: Block, side: Block, around: Block, takes: Value) -> None:
    """What comes out of a side: its own values where samples take it, else those of the way around it."""
    b = Builder(side, at=len(side.instructions) - 1)
    for phi in out.phis:
        number = phi.blocks.index(side)
        phi.operands[number] = b.select(takes, phi.operands[number], phi.operands[phi.blocks.index(around)])


def _is_side(block: Block, facts: Uniformity) -> bool:
    """Whether a block can run for samples that do not take it, because one takes it: no address is of one's own."""
    return all(_harmless(i) and i.opcode not in TRAPS and not (i.opcode == "load" and i.operands[0] in facts.varying)
               for i in block.instructions)  # fmt: skip


def _condition(b: Builder, branch: Instruction, to: Block) -> Value:
    """The condition under which a branch goes to a block."""
    condition = branch.operands[0]
    return condition if branch.blocks[0] is to else b.binary("xor", condition, ConstInt(ty.I1, 1))


def _uniform(module: Module, b: Builder, branch: Instruction, condition: Value, to: Block) -> None:
    """Let all samples take a branch to a block if one does."""
    other = branch.blocks[1] if branch.blocks[0] is to else branch.blocks[0]
    branch.operands[0] = b.call(_marker(module, ANY, (ty.I1,)), [condition])
    branch.blocks = [to, other]


def _borrow(module: Module, region: list[Block], enters: Value) -> None:
    """What the region reads of values and memory from before it, as samples that enter have them.

    An address that is right for one sample can be read for all: their memory is of one size.
    """
    inside, before = set(region), region[0]
    b = Builder(before, at=0)
    borrowed: dict[Value, Value] = {}
    instructions = [i for block in region for i in block.instructions]
    for value in {v: None for i in instructions for v in i.operands}:
        if isinstance(value, Instruction) and value.block not in inside and not value.type.is_ptr:
            borrowed[value] = _borrowed(module, b, value, enters)
    for load in [i for i in before.instructions if i.opcode == "load" and not i.type.is_ptr]:
        b.at = before.instructions.index(load) + 1
        borrowed[load] = _borrowed(module, b, load, enters)
    for instr in instructions:
        instr.operands = [borrowed.get(v, v) for v in instr.operands]


def _borrowed(module: Module, b: Builder, value: Value, enters: Value) -> Value:
    return b.call(_marker(module, f"{BORROW}.{value.type}", (value.type, ty.I1)), [value, enters])


def _marker(module: Module, name: str, types: Iterable[ty.Type]) -> Function:
    rows = tuple(types)
    found = module.functions.get(name)
    if found is None:
        found = module.functions[name] = Function(name, ty.function(rows[0], rows))
    return found


def _harmless(instr: Instruction) -> bool:
    """Whether an instruction may be done again."""
    if instr.opcode == "call":
        name = instr.callee_name or ""
        return name.startswith((ANY, BORROW, *IGNORED)) or pure(instr)
    if instr.opcode == "load":
        return not instr.volatile and not instr.ordering
    return instr.opcode in PURE or instr.opcode in ("br", "phi")
