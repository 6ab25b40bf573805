"""The largest or smallest of what a loop computes, computed once more behind the loop.

    loop:                                        loop:
      k = phi(...)                                 k = phi(...), k* = phi(k's start, k*'), some = phi(false, some')
      m = phi(start, m')                           m = phi(start, m')
      v = f(k)                                     v = f(k)
      m' = select(v < m, v, m)              ->     m' = select(v < m, v, m), the same for k*' and some'
    exit:                                        exit:
      ... m' ...                                   ... select(some', f(k*'), start) ...

As in `extrema.py`, the value behind the loop is that of one item, and so is its derivative; the chain stays for what is
compared. Kept are the counters of the iteration that was chosen, not which way each choice went.

Done where the loop is there for its extrema alone: it writes nothing and hands on no other floats. The item is made of
loads and arithmetic that give the same bits again, in a part of the loop that each run of it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Value
from irgrad.engine.ir.opcodes import ACCESSES, PURE, having
from irgrad.engine.ir.rewrite import copied, replace_uses
from irgrad.engine.normalise.extrema import Extremum, chosen, running_extrema

__all__ = ["repeat_extrema"]

_SAME_BITS = PURE - {"freeze", "phi"}
_WRITES = ACCESSES & having("writes")
_FUNCTIONS = tuple(f"llvm.{name}." for name in ("fmuladd", "fma", "sqrt", "fabs", "copysign", "maxnum", "minnum"))
_LONGEST, _COUNTERS = 40, 3


@dataclass(slots=True)
class _Item:
    """What is computed again: instructions in order, and the counters that they start from."""

    steps: list[Instruction]
    counters: list[Instruction]


def repeat_extrema(fn: Function) -> int:
    """Have the loops of a function keep where their computed extrema are. Returns how many do."""
    found = running_extrema(fn, lambda item: item.opcode not in {"load", "phi"})
    loops, count = get(Loops, fn), 0
    for one in found:
        item = _item(one, loops)
        if item is not None and _alone(one.loop, [other for other in found if other.loop is one.loop]):
            _rewrite(fn, one, item)
            count += 1
    return count


def _item(one: Extremum, loops: Loops) -> _Item | None:
    """The instructions of an item; None where they are too many, or may not give the same bits again."""
    loop, block = one.loop, one.item.block
    assert block is not None
    ends = [*loop.latches, *(source for phi in one.exits for source in phi.blocks)]
    if not all(loops.dom.dominates(block, end) for end in ends):  # the first iteration computes one, too
        return None
    steps: dict[Instruction, None] = {}
    counters: dict[Instruction, None] = {}
    stack: list[Value] = [one.item]
    while stack:
        value = stack[-1]
        if not isinstance(value, Instruction) or value in steps or value in counters or not loop.contains(value.block):
            stack.pop()
            continue
        if value.block is loop.header and value.opcode == "phi" and not isinstance(value.type, ty.FloatType):
            counters[value] = None
            continue
        if not _repeats(value) or (value.block is not None and loops.of(value.block) is not loop):
            return None
        operands = value.args if value.is_call else value.operands
        missing = [o for o in operands if isinstance(o, Instruction) and loop.contains(o.block)
                   and o not in steps and o not in counters]  # fmt: skip
        if not missing:
            steps[value] = None
        stack += missing
        if len(steps) + len(stack) > _LONGEST or len(counters) > _COUNTERS:
            return None
    return _Item(list(steps), list(counters)) if counters else None


def _repeats(instr: Instruction) -> bool:
    if instr.opcode == "load":
        return not instr.volatile and not instr.ordering
    if instr.is_call:
        return (instr.callee_name or "").startswith(_FUNCTIONS)
    return instr.opcode in _SAME_BITS


def _alone(loop: Loop, extrema: list[Extremum]) -> bool:
    """Whether the loop writes nothing, and hands on, to the next iteration or out of it, no floats but its extrema."""
    own = {value for one in extrema for value in (one.phi, *one.exits)}
    phis = [*loop.header.phis, *(phi for block in loop.exits for phi in block.phis)]
    if any(phi not in own and not isinstance(phi.type, ty.IntType | ty.PtrType) for phi in phis):
        return False
    inside = [i for block in loop.blocks for i in block.instructions]
    return not any(i.opcode in _WRITES or (i.is_call and not _silent(i)) for i in inside)


def _silent(call: Instruction) -> bool:
    return (call.callee_name or "").startswith((*_FUNCTIONS, "llvm.dbg.", "llvm.assume"))


def _rewrite(fn: Function, one: Extremum, item: _Item) -> None:
    phi, last, loop = one.phi, one.last, one.loop
    assert loop.preheader is not None and loop.latch is not None and last.block is not None
    start = phi.operands[phi.blocks.index(loop.preheader)]
    kept: dict[Instruction | None, tuple[Instruction, Value]] = {}
    for counter in (None, *item.counters):  # None: whether an item was chosen at all
        kind = ty.I1 if counter is None else counter.type
        first = ConstInt(ty.I1, 0) if counter is None else counter.operands[counter.blocks.index(loop.preheader)]
        before = Builder(loop.header, 0).phi(kind, [(first, loop.preheader)])
        at = Builder(last.block, last.block.instructions.index(last) + 1)
        latest = chosen(at, one, ConstInt(ty.I1, 1) if counter is None else counter, before)
        before.operands.append(latest)
        before.blocks.append(loop.latch)
        kept[counter] = (before, latest)
    for old in one.exits:
        assert old.block is not None
        values: dict[Instruction | None, Value] = {}
        for counter, (before, latest) in kept.items():
            sources = [(before if v is phi else latest, s) for v, s in zip(old.operands, old.blocks, strict=True)]
            values[counter] = Builder(old.block, 0).phi(before.type, sources)
        b = Builder(old.block, len(old.block.phis))
        again: dict[Value, Value] = {counter: values[counter] for counter in item.counters}
        for step in item.steps:
            again[step] = b.insert(copied(step, [again.get(o, o) for o in step.operands]))
        found = b.select(values[None], again[one.item], start)
        old.block.instructions.remove(old)
        replace_uses(fn, {old: found})
