"""A function that stops where many threads take over, and goes on when it is called again.

A call of a loop that a grid runs ends the function: what is needed afterwards goes to memory of the launch (`state`),
with a number that says where it goes on. So one program is a sequence of launches, whatever its control flow: one
thread runs it up to the next such loop, all threads run the loop, one thread goes on.

    state:  i64 where | values that are live where it stops | arrays on the stack
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import uses_of

__all__ = ["DONE", "Resumable", "Stop", "resumable"]

DONE = -1
"""What `where` is when the function is through."""


@dataclass(slots=True)
class Stop:
    """A place where the function stops. number: `where` it goes on; callee: what it calls there; given: offset in the
    state and type of each argument of the call."""

    number: int
    callee: str
    given: list[tuple[int, ty.Type]] = field(default_factory=list)


@dataclass(slots=True)
class Resumable:
    """bytes: of the state; stops: in the order of their numbers, from 1."""

    bytes: int
    stops: list[Stop]


@dataclass(slots=True)
class _State:
    """Offsets in the state, as they are handed out."""

    end: int = 16

    def room(self, kind: ty.Type, count: int = 1) -> int:
        at = self.end
        self.end += -(-max(1, ty.size_of(kind) * count) // 16) * 16
        return at


Finish = Callable[[Builder, Stop, Instruction], Value | None]
"""Emits the result of a call where the function goes on behind it, None for a call without one."""


def resumable(
    fn: Function, state: Argument, calls: Sequence[Instruction], finish: Finish, header: int = 0
) -> Resumable:
    """Make `fn` stop at the calls. state: its argument with memory that stays from call to call, whose first word is 0
    before the first; header: bytes behind that word that are somebody else's."""
    room = _State(16 + -(-header // 16) * 16)
    entry = Block("enter")
    at = Builder(entry)
    _stacks(fn, state, at, room)
    for block in fn.blocks:
        if block.terminator.opcode == "ret":
            Builder(block, len(block.instructions) - 1).store(ConstInt(ty.I64, DONE), state, 8)
    first, stops, targets = fn.entry, list[Stop](), list[Block]()
    for number, call in enumerate(calls, start=1):
        stop = Stop(number, call.callee_name or "")
        targets.append(_cut(fn, state, call, stop, room, finish))
        stops.append(stop)
    _spill(fn, state, targets, room)
    over = Block("over")
    Builder(over).ret()
    where = at.load(ty.I64, state, 8)
    at.switch(where, over, [(ConstInt(ty.I64, n), b) for n, b in enumerate([first, *targets])])
    fn.blocks = [entry, *fn.blocks, over]
    for block in fn.blocks:
        block.function = fn
    return Resumable(room.end, stops)


def _stacks(fn: Function, state: Argument, at: Builder, room: _State) -> None:
    """Memory on the stack becomes memory of the state."""
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        kept = []
        for instr in block.instructions:
            if instr.opcode == "alloca":
                count = instr.operands[0]
                assert isinstance(count, ConstInt)
                offset = room.room(instr.elem or ty.I8, count.value)
                replaced[instr] = at.gep(ty.I8, state, offset, flags=())
            elif not (instr.is_call and (instr.callee_name or "").startswith("llvm.lifetime.")):
                kept.append(instr)
        block.instructions = kept
    replace_uses(fn, replaced)


def _cut(fn: Function, state: Argument, call: Instruction, stop: Stop, room: _State, finish: Finish) -> Block:
    """End the function at a call; the block where it goes on."""
    block = call.block
    assert block is not None
    number = block.instructions.index(call)
    after = Block(f"resume.{stop.number}")
    after.instructions = block.instructions[number + 1 :]
    block.instructions = block.instructions[:number]
    at = Builder(block)
    for value in call.args:
        offset = room.room(value.type)
        at.store(value, at.gep(ty.I8, state, offset, flags=()), 8)
        stop.given.append((offset, value.type))
    at.store(ConstInt(ty.I64, stop.number), state, 8)
    at.ret()
    result = finish(Builder(after, 0), stop, call)
    for instr in after.instructions:
        instr.block = after
    for to in dict.fromkeys(after.successors):
        for phi in to.phis:
            phi.blocks = [after if source is block else source for source in phi.blocks]
    fn.blocks.insert(fn.blocks.index(block) + 1, after)
    if result is not None:
        replace_uses(fn, {call: result})
    return after


# -- values that are live where it goes on -----------------------------------------------------------------------------


def _spill(fn: Function, state: Argument, targets: Sequence[Block], room: _State) -> None:
    """What is live where the function goes on is in the state: written when it is made, read where it is used."""
    live = _live(fn)
    uses, inside = uses_of(fn.blocks), set(fn.blocks)
    wanted = {value: None for block in targets for value in live[block] if value.block in inside}
    for value in sorted(wanted, key=lambda value: _order(fn, value)):
        offset = room.room(value.type)
        home = value.block
        assert home is not None
        for user in list(dict.fromkeys(uses.get(value, ()))):
            _reload(state, value, offset, user)
        row = home.instructions
        place = len(home.phis) if value.opcode == "phi" else row.index(value) + 1
        at = Builder(home, place)
        at.store(value, at.gep(ty.I8, state, offset, flags=()), _align(value.type))


def _order(fn: Function, value: Instruction) -> tuple[int, int]:
    assert value.block is not None
    return fn.blocks.index(value.block), value.block.instructions.index(value)


def _reload(state: Argument, value: Instruction, offset: int, user: Instruction) -> None:
    """Read a value from the state where another block uses it."""
    for number, operand in enumerate(user.operands):
        if operand is not value:
            continue
        source = user.blocks[number] if user.opcode == "phi" else user.block
        assert source is not None
        if source is value.block:
            continue
        where = len(source.instructions) - 1 if user.opcode == "phi" else source.instructions.index(user)
        at = Builder(source, where)
        user.operands[number] = at.load(value.type, at.gep(ty.I8, state, offset, flags=()), _align(value.type))


def _align(kind: ty.Type) -> int:
    return min(8, ty.align_of(kind))


def _live(fn: Function) -> dict[Block, set[Instruction]]:
    """Values of instructions that are live where each block begins."""
    needed: dict[Block, set[Instruction]] = {}
    made: dict[Block, set[Instruction]] = {}
    handed: dict[Block, set[Instruction]] = {block: set() for block in fn.blocks}
    for block in fn.blocks:
        own, before = set[Instruction](), set[Instruction]()
        for instr in block.instructions:
            if instr.opcode == "phi":
                for operand, source in zip(instr.operands, instr.blocks, strict=True):
                    if isinstance(operand, Instruction):
                        handed[source].add(operand)
            else:
                before |= {o for o in instr.operands if isinstance(o, Instruction) and o not in own}
            own.add(instr)
        needed[block], made[block] = before, own
    live = {block: set(needed[block]) for block in fn.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(fn.blocks):
            out = set(handed[block])
            for to in block.successors:
                out |= live[to]
            new = needed[block] | (out - made[block])
            if new != live[block]:
                live[block], changed = new, True
    return live
