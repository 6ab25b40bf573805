"""The function of a single iteration, of that of a segment, for loops whose sweeps run together.

    f.segment(state, n, others...)           up to n iterations
    f.one(state, 1, others..., arena)        one: nothing leads back
    f.segments(state, total, others...)      the loop, by one iteration after the other

Values of an iteration then lie where its reverse sweep takes them: in registers, or in an arena that is emptied after
each. The derivative of `f.one` is given that; nothing else uses it. Where an iteration may turn out to read what others
left in memory, `f.segments` asks, and runs the segment of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import Block, ConstInt, Function, Module, Value
from irgrad.engine.ir.rewrite import copied_blocks, replace_uses

__all__ = ["internal", "one_iteration", "reads_others", "write_loop"]


def internal(module: Module, name: str, ret: ty.Type, params: Sequence[ty.Type]) -> Function:
    """A new function of the module, which stays out of line."""
    fn = Function(name, ty.function(ret, tuple(params)))
    fn.head, fn.tail = "internal", "noinline nounwind"
    module.functions[name] = fn
    return fn


def one_iteration(module: Module, step: Function, name: str) -> Function:
    """The function of a single iteration, given that of a segment."""
    fn = internal(module, name, step.ftype.ret, [*(arg.type for arg in step.args), ty.PTR])
    blocks, values = copied_blocks(step.blocks)
    fn.blocks = list(blocks.values())
    replaced: dict[Value, Value] = {**values, **dict(zip(step.args, fn.args, strict=False))}
    for block in fn.blocks:
        block.function = fn
        for instr in block.instructions:
            instr.operands = [replaced.get(operand, operand) for operand in instr.operands]
    for argument, new in zip(step.args, fn.args, strict=False):
        new.attrs = argument.attrs
    first, header, back = (blocks[b] for b in _round(step))
    after = next(b for b in back.terminator.blocks if b is not header)
    at = Builder(back)
    at.metadata = back.instructions.pop().metadata
    at.br(after)
    entered: dict[Value, Value] = {phi: phi.operands[phi.blocks.index(first)] for phi in header.phis}
    header.instructions = [instr for instr in header.instructions if instr.opcode != "phi"]
    replace_uses(fn, entered)
    return fn


def _round(step: Function) -> tuple[Block, Block, Block]:
    """Of the function of a segment: where it begins, the head of its loop, and what leads back there."""
    first = step.blocks[0]
    header = first.terminator.blocks[0]
    return first, header, next(b for b in step.blocks if b is not first and header in b.terminator.blocks)


def write_loop(
    whole: Function, step: Function, one: Function | None, state: ty.StructType, ends: int | None,
    carried: Sequence[int],
) -> None:  # fmt: skip
    """Write the function of the loop: the segment of all iterations, which its derivative does otherwise; or one by one
    until the state says in this field that it ends (None: so many times), but for where iterations read what others
    wrote: as much as these arguments say."""
    entry, all_, turn, done = (Block(word) for word in ("entry", "whole", "turn", "done"))
    whole.blocks = [entry, *([all_] if one is None or carried else []), *([turn, done] if one is not None else [])]
    for block in whole.blocks:
        block.function = whole
    args, at = whole.args[: len(step.args)], Builder(entry)
    if one is None or carried:
        Builder(all_).call(step, args)
        Builder(all_).ret()
    if one is None:
        at.br(all_)
        return
    if carried:
        at.cond_br(reads_others(at, [whole.args[n] for n in carried]), all_, turn)
    else:
        at.br(turn)
    at = Builder(turn)
    ran = at.phi(ty.I64, [(ConstInt(ty.I64, 0), entry)])
    at.call(one, [args[0], ConstInt(ty.I64, 1), *whole.args[2 : len(one.args) - 1], zero(ty.PTR)])
    after = at.add(ran, ConstInt(ty.I64, 1))
    ran.operands.append(after)
    ran.blocks.append(turn)
    if ends is None:
        at.cond_br(at.icmp("ult", after, args[1]), turn, done)
    else:
        at.cond_br(at.icmp("eq", at.load(ty.I64, at.field(state, args[0], ends)), ConstInt(ty.I64, 0)), turn, done)
    Builder(done).ret()


def reads_others(at: Builder, carried: Sequence[Value]) -> Value:
    """Whether iterations read what others wrote, given of each piece of memory the bytes that are handed on."""
    total = carried[0]
    for more in carried[1:]:
        total = at.binary("or", total, more)
    return at.icmp("ne", total, ConstInt(ty.I64, 0))
