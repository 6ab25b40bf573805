"""Copies of functions' bodies: under another name, or in the place of a call."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as shallow

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstUndef, Function, Instruction, MetadataValue, Module, Value

__all__ = ["copied_blocks", "copied_function", "cut_block", "inline"]


def copied_blocks(blocks: Sequence[Block], known: dict[Value, Value]) -> list[Block]:
    """Copies of blocks, without debug records. known: what stands in the place of other values; the copies of values
    are added to it."""
    made: list[tuple[Instruction, Instruction]] = []
    found: list[Block] = []
    for block in blocks:
        copy = Block()
        known[block] = copy
        found.append(copy)
    for block, copy in zip(blocks, found, strict=True):
        for instr in block.instructions:
            other = _copied(instr)
            other.block = copy
            copy.instructions.append(other)
            known[instr] = other
            made.append((instr, other))
    for instr, other in made:
        other.operands = [_known(o, known) for o in instr.operands]
        targets = [known.get(b, b) for b in instr.blocks]
        other.blocks = [b for b in targets if isinstance(b, Block)]
    return found


def copied_function(module: Module, fn: Function, name: str) -> Function:
    """A copy of a function of the module, under a name that is free; its calls may be changed."""
    made = Function(name, fn.ftype, [arg.name for arg in fn.args])
    made.head, made.ret_attrs = fn.head, fn.ret_attrs
    made.tail = fn.tail.replace(" comdat", "")
    made.metadata = {kind: text for kind, text in fn.metadata.items() if kind != "dbg"}
    for new, old in zip(made.args, fn.args, strict=True):
        new.attrs = old.attrs
    made.blocks = copied_blocks(fn.blocks, dict(zip(fn.args, made.args, strict=True)))
    for block, before in zip(made.blocks, fn.blocks, strict=True):
        block.function, block.name = made, before.name
        for instr in block.instructions:
            instr.call = shallow(instr.call)
    module.functions[name] = made
    return made


def _known(value: Value, known: dict[Value, Value]) -> Value:
    if isinstance(value, MetadataValue) and value.value is not None:
        return MetadataValue(value.text, known.get(value.value, value.value))
    return known.get(value, value)


def _copied(instr: Instruction) -> Instruction:
    return Instruction(
        instr.opcode, instr.type, (), flags=instr.flags, pred=instr.pred, elem=instr.elem, align=instr.align,
        indices=instr.indices, call=instr.call, volatile=instr.volatile, ordering=instr.ordering,
        clauses=instr.clauses, metadata=dict(instr.metadata),
    )  # fmt: skip


def cut_block(fn: Function, block: Block, at: int) -> Block:
    """The block with the instructions from number `at` on, moved out of a block, which is left without a terminator."""
    rest = Block()
    rest.function = fn
    rest.instructions = block.instructions[at:]
    for instr in rest.instructions:
        instr.block = rest
    block.instructions = block.instructions[:at]
    for after in dict.fromkeys(rest.successors):
        for phi in after.phis:
            phi.blocks = [rest if b is block else b for b in phi.blocks]
    fn.blocks.insert(fn.blocks.index(block) + 1, rest)
    return rest


def inline(fn: Function, call: Instruction) -> None:
    """Put the body of a called function in the place of the call, its variables among those of the caller."""
    callee, block = call.callee, call.block
    assert isinstance(callee, Function) and block is not None
    at = block.instructions.index(call)
    rest = cut_block(fn, block, at + 1)
    block.instructions.pop()
    known: dict[Value, Value] = dict(zip(callee.args, call.args, strict=True))
    blocks = copied_blocks(callee.blocks, known)
    variables = [i for i in blocks[0].instructions if i.opcode == "alloca"]
    blocks[0].instructions = [i for i in blocks[0].instructions if i.opcode != "alloca"]
    for variable in variables:
        variable.block = fn.entry
    fn.entry.instructions[:0] = variables
    Builder(block).br(blocks[0])
    results: list[tuple[Value, Block]] = []
    for copy in blocks:
        copy.function = fn
        if copy.terminator.opcode == "ret":
            ended = copy.instructions.pop()
            results.append((ended.operands[0] if ended.operands else call, copy))
            Builder(copy).br(rest)
    place = fn.blocks.index(rest)
    fn.blocks[place:place] = blocks
    if call.type is not ty.VOID:
        value: Value = ConstUndef(call.type, poison=True)
        if results:
            value = Builder(rest, 0).phi(call.type, results)
        for instr in fn.instructions():
            instr.operands = [value if o is call else o for o in instr.operands]
