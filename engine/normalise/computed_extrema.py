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
loads and arithmetic that give the same bits again, in a part of the loop that each run of it reaches. Where inner loops
are behind it (a distance, that is a sum), an iteration runs once more behind the loop, up to its item: then the reverse
sweep goes through one iteration and not through all.
"""

from __future__ import annotations

from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
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
    return _repeat_items(fn) + _repeat_iterations(fn)


def _repeat_items(fn: Function) -> int:
    found = running_extrema(fn, lambda item: item.opcode not in {"load", "phi"})
    loops, count = get(Loops, fn), 0
    for one in found:
        item = _item(one, loops)
        if item is not None and _alone(one.loop, [other for other in found if other.loop is one.loop]):
            _rewrite(fn, one, item)
            count += 1
    return count


def _repeat_iterations(fn: Function) -> int:
    count = 0
    while True:
        found = running_extrema(fn, lambda item: item.opcode != "load")
        loops = get(Loops, fn)
        for one in found:
            iteration = _iteration(one, loops)
            if iteration is not None and _alone(one.loop, [other for other in found if other.loop is one.loop]):
                _run_again(fn, one, iteration)
                count += 1
                break  # blocks are others now
        else:
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
    phi, loop = one.phi, one.loop
    assert loop.preheader is not None
    start = phi.operands[phi.blocks.index(loop.preheader)]
    for old, values in _kept(one, item.counters).items():
        assert old.block is not None
        b = Builder(old.block, len(old.block.phis))
        again: dict[Value, Value] = {counter: values[counter] for counter in item.counters}
        for step in item.steps:
            again[step] = b.insert(copied(step, [again.get(o, o) for o in step.operands]))
        found = b.select(values[None], again[one.item], start)
        old.block.instructions.remove(old)
        replace_uses(fn, {old: found})


def _kept(one: Extremum, counters: list[Instruction]) -> dict[Instruction, dict[Instruction | None, Value]]:
    """Of each phi behind the loop, the counters of the iteration that was chosen; under None whether there is one."""
    phi, last, loop = one.phi, one.last, one.loop
    assert loop.preheader is not None and loop.latch is not None and last.block is not None
    kept: dict[Instruction | None, tuple[Instruction, Value]] = {}
    for counter in (None, *counters):
        kind = ty.I1 if counter is None else counter.type
        first = ConstInt(ty.I1, 0) if counter is None else counter.operands[counter.blocks.index(loop.preheader)]
        before = Builder(loop.header, 0).phi(kind, [(first, loop.preheader)])
        at = Builder(last.block, last.block.instructions.index(last) + 1)
        latest = chosen(at, one, ConstInt(ty.I1, 1) if counter is None else counter, before)
        before.operands.append(latest)
        before.blocks.append(loop.latch)
        kept[counter] = (before, latest)
    found: dict[Instruction, dict[Instruction | None, Value]] = {}
    for old in one.exits:
        assert old.block is not None
        values = found[old] = {}
        for counter, (before, latest) in kept.items():
            sources = [(before if v is phi else latest, s) for v, s in zip(old.operands, old.blocks, strict=True)]
            values[counter] = Builder(old.block, 0).phi(before.type, sources)
    return found


# -- iterations with loops in them -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Iteration:
    """What runs again: the blocks up to that of the item, of which they are the last, and counters."""

    blocks: list[Block]
    counters: list[Instruction]


def _iteration(one: Extremum, loops: Loops) -> _Iteration | None:
    """An iteration up to its item; None where that is too long, may not give the same bits again, or hangs on the
    extremum."""
    loop, last = one.loop, one.item.block
    assert last is not None
    ends = [*loop.latches, *(source for phi in one.exits for source in phi.blocks)]
    if len(one.exits) != 1 or not all(loops.dom.dominates(last, end) for end in ends):
        return None
    inside: dict[Block, None] = {loop.header: None}
    pending = [loop.header] if loop.header is not last else []
    while pending:
        for block in pending.pop().successors:
            if not loop.contains(block) or block is loop.header:
                return None
            if block not in inside:
                inside[block] = None
                pending += [block] if block is not last else []
    blocks = [block for block in loop.blocks if block in inside]
    rows = [i for block in blocks for i in (_up_to(block, one.item) if block is last else block.instructions)]
    if not any(loops.of(block) is not loop for block in blocks) or len(rows) > _LONGEST:
        return None
    first = set(loop.header.phis)
    counters: dict[Instruction, None] = {}
    for instr in rows:
        if instr in first:
            continue
        if not (instr.opcode in ("phi", "br") or _repeats(instr) or _silent_call(instr)):
            return None
        used = [o for o in instr.operands if isinstance(o, Instruction) and o in first]
        if any(isinstance(o.type, ty.FloatType) for o in used):
            return None
        counters.update(dict.fromkeys(used))
    return _Iteration(blocks, list(counters)) if 0 < len(counters) <= _COUNTERS else None


def _silent_call(instr: Instruction) -> bool:
    return instr.is_call and _silent(instr)


def _up_to(block: Block, item: Instruction) -> list[Instruction]:
    return block.instructions[: block.instructions.index(item) + 1]


def _run_again(fn: Function, one: Extremum, iteration: _Iteration) -> None:
    """Put the iteration behind the loop, with the counters of the one that was chosen."""
    (old,) = one.exits
    place, loop = old.block, one.loop
    assert place is not None and loop.preheader is not None
    start = one.phi.operands[one.phi.blocks.index(loop.preheader)]
    values = _kept(one, iteration.counters)[old]
    at = len(place.phis)
    behind = Block()
    behind.function = fn
    for instr in place.instructions[at:]:
        instr.block = behind
    behind.instructions, place.instructions = place.instructions[at:], place.instructions[:at]
    for block in dict.fromkeys(behind.successors):
        for phi in block.phis:
            phi.blocks = [behind if b is place else b for b in phi.blocks]
    blocks = {block: Block() for block in iteration.blocks}
    again: dict[Value, Value] = {counter: values[counter] for counter in iteration.counters}
    first, item = set(loop.header.phis), one.item
    copies: list[Instruction] = []
    for block, copy in blocks.items():
        copy.function = fn
        rows = _up_to(block, item) if block is item.block else block.instructions
        for instr in rows:
            if instr not in first:
                again[instr] = Builder(copy).insert(copied(instr, list(instr.operands)))
                copies.append(again[instr])  # type: ignore[arg-type]
                copies[-1].blocks = [blocks.get(b, b) for b in instr.blocks]
    for instr in copies:
        instr.operands = [again.get(o, o) for o in instr.operands]
    assert item.block is not None
    Builder(blocks[item.block]).br(behind)
    Builder(place).br(blocks[loop.header])
    where = fn.blocks.index(place) + 1
    fn.blocks[where:where] = [*blocks.values(), behind]
    found = Builder(behind, 0).select(values[None], again[item], start)
    place.instructions.remove(old)
    replace_uses(fn, {old: found})
