"""The tape of an iteration whose bytes are known before the loop around it, reserved there once.

    for i in 0..n:  f(i, k, arena)                with  f:  p = alloc(arena, 8 * k); ...; reuse(arena)
becomes
    p = alloc(outer, 8 * k);  for i in 0..n:  f(i, k, arena, p)

where both sweeps of an iteration are one function (see `fused.py`): no iteration needs what another one put there. What
an iteration reserves on a condition that all iterations decide alike is reserved on that condition; the rest stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, CallInfo, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.rewrite import copied, replace_uses

__all__ = ["reserve_before"]

_DEEPEST = 40  # operations in the number of bytes


def reserve_before(target: Function, call: Instruction, varying: Value, lent: Value, outer: Value, at: Builder) -> None:
    """Reserve what the called function takes of the arena `lent`, in the arena `outer`, before the loop that the call
    is in. varying: the argument that is not the same in all iterations."""
    given: dict[Value, Value] = dict(zip(target.args, call.args, strict=True))
    fixed = {arg: value for arg, value in given.items() if value is not varying and value is not lent}
    arena = next(arg for arg, value in given.items() if value is lent)
    known = _Known(target, fixed)
    reserved: dict[Value, Value] = {}
    for block in target.blocks:
        if get(Loops, target).of(block) is not None:
            continue
        conditions = known.conditions(block)
        for n, instr in enumerate(block.instructions if conditions is not None else ()):
            if _is(instr, "alloc") and instr.args[0] is arena and known.fixed(instr.args[1]):
                size: Value = known.emit(at, instr.args[1])
                for condition, holds in conditions or ():
                    some, none = (size, ConstInt(ty.I64, 0)) if holds else (ConstInt(ty.I64, 0), size)
                    size = at.select(known.emit(at, condition), some, none)
                told = block.instructions[n - 1] if n else instr
                if _is(told, "at") and known.fixed(told.args[1]):
                    at.call(told.callee, [outer, known.emit(at, told.args[1]), told.args[2]])
                reserved[instr] = at.call(instr.callee, [outer, size])
    _hand_in(target, call, reserved)
    if not any(arena in i.operands and not _is(i, "at", "reuse") for i in target.instructions()):
        for block in target.blocks:
            block.instructions[:] = [i for i in block.instructions if arena not in i.operands]


def _is(instr: Instruction, *names: str) -> bool:
    """Whether an instruction calls one of these functions of the arena."""
    return instr.is_call and instr.callee_name in [f"irgrad.tape.{name}" for name in names]


def _hand_in(target: Function, call: Instruction, reserved: Mapping[Value, Value]) -> None:
    """Arguments for what was reserved, in place of reserving it."""
    target.ftype = ty.function(target.ftype.ret, (*target.ftype.params, *(ty.PTR for _ in reserved)))
    replaced: dict[Value, Value] = {}
    for instr in reserved:
        replaced[instr] = new = Argument(ty.PTR, None, len(target.args), "noalias")
        new.function = target
        target.args.append(new)
    for block in target.blocks if reserved else ():
        block.instructions[:] = [instr for instr in block.instructions if instr not in reserved]
    replace_uses(target, replaced)
    call.operands = [*call.args, *reserved.values(), call.callee]
    call.call = CallInfo(target.ftype)


class _Known:
    """What is the same in all iterations, given the arguments that are."""

    def __init__(self, fn: Function, arguments: Mapping[Value, Value]) -> None:
        self.fn, self.arguments = fn, arguments
        self.emitted: dict[Value, Value] = dict(arguments)

    def fixed(self, value: Value, depth: int = _DEEPEST) -> bool:
        """Whether a value is."""
        if not isinstance(value, Instruction):
            return value in self.arguments if isinstance(value, Argument) else True
        if not depth or value.opcode not in SPECULATABLE or value.is_call or value.opcode == "phi":
            return False
        return all(self.fixed(operand, depth - 1) for operand in value.operands)

    def emit(self, at: Builder, value: Value) -> Value:
        """It, before the loop."""
        if isinstance(value, Instruction) and value not in self.emitted:
            self.emitted[value] = at.insert(copied(value, [self.emit(at, operand) for operand in value.operands]))
        return self.emitted.get(value, value)

    def conditions(self, block: Block) -> list[tuple[Value, bool]] | None:
        """On which conditions an iteration that returns comes to a block; None where they are not known before it."""
        dominators, post, found = get(Dominators, self.fn), get(PostDominators, self.fn), list[tuple[Value, bool]]()
        while (above := dominators.idom(block)) is not None:
            if not post.dominates(block, above):
                end = above.terminator
                alone = get(Cfg, self.fn).preds(block) == [above] and end.blocks.count(block) == 1
                if alone and end.opcode == "br" and self.fixed(end.operands[0]):
                    found.append((end.operands[0], end.blocks[0] is block))
                elif self._returns_past(block, above):
                    return None
            block = above
        return found

    def _returns_past(self, block: Block, above: Block) -> bool:
        """Whether the function may return without coming to one block behind another one."""
        seen = {block, above}
        work = [above]
        while work:
            for after in get(Cfg, self.fn).succs(work.pop()):
                if after not in seen:
                    seen.add(after)
                    work.append(after)
        return any(b.terminator.opcode != "unreachable" and not b.successors for b in seen - {block})
