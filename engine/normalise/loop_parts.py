"""A loop as several, one behind the other, each with what is known in it.

    loop k < n: ...      ->      if 0 < p:  loop 0 <= k < p: ...      ; with what is known in the first part
                                 if p < n:  loop p <= k < n: ...

    loop k < n: ...      ->      if c: loop k < n: ...                ; with what `c` tells
                                 else: loop k < n: ...

Iterations and their order stay. What passes from one iteration to the next passes from part to part, and what the loop
hands on is that of the last part that ran. What is known decides branches and choices, and what is never reached then
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Constant, ConstInt, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.opcodes import BITWISE
from irgrad.engine.ir.rewrite import copied_blocks
from irgrad.engine.ir.uses import Uses
from irgrad.engine.normalise.dead_ends import dead_ends, way_out

__all__ = ["Part", "Version", "choose", "cut", "may_be_cut", "place_before"]


@dataclass(slots=True)
class Part:
    """Iterations low to high (both of 64 bits), with what some values are known to be in them.

    once: it is just one iteration; runs: it has one, whatever the numbers are
    """

    low: Value
    high: Value
    known: dict[Value, Value]
    once: bool = False
    runs: bool = False


@dataclass(slots=True)
class Version:
    """What a version of a loop may know.

    values: what the question hangs on, from outside of the loop; write: writes the question at a place before the loop,
    a truth value, and gives what values of the loop are known to be where it holds
    """

    values: list[Value]
    write: Callable[[Builder], tuple[Value, dict[Value, Value]]]


def may_be_cut(loop: Loop, loops: Loops, users: Uses, longest: int) -> bool:
    """Whether a loop has one way in, one end, at the end of an iteration, at most so many instructions, and hands on
    values through the phis of its exit alone. users: those of the function's values."""
    fn = loops.cfg.fn
    leave = way_out(fn, loop)
    if loop.preheader is None or loop.latch is None or leave is None:
        return False
    last, own = loop.latch.terminator, {*loop.blocks, *dead_ends(fn, loop)}
    if last.opcode != "br" or len(set(last.blocks)) != 2 or loops.cfg.preds(leave) != [loop.latch]:
        return False
    rows = [i for block in own for i in block.instructions]
    plain = all(block.terminator.opcode in ("br", "switch") for block in loop.blocks)
    if not plain or len(rows) > longest or any(i.call is not None and i.call.bundles for i in rows):
        return False
    exits = leave.phis
    return all(user.block in own or user in exits for row in rows for user in users.get(row, ()))


def place_before(fn: Function, loop: Loop, values: Sequence[Value], divides: bool) -> Builder:
    """As far in front of a loop as all these values are known: what runs around it may be counted there as well.
    divides: whether by what may be zero where the loop never runs."""
    assert loop.preheader is not None
    place, around = loop.preheader, loop.parent
    known = [v for v in values if isinstance(v, Instruction)]
    if not divides:
        while around is not None and around.preheader and not any(around.contains(v.block) for v in known):
            place, around = around.preheader, around.parent
        if around is None and all(v.block is fn.entry for v in known):
            place = fn.entry
    return Builder(place, len(place.instructions) - 1)


def cut(fn: Function, loop: Loop, parts: Sequence[Part]) -> list[Block]:
    """Have a loop of which `may_be_cut` holds in parts. Returns the headers of the loops that there are now."""
    preheader, ends = loop.preheader, _Ends(fn, loop)
    leave = ends.leave
    assert preheader is not None
    preheader.instructions.pop()
    now: dict[Instruction, Value] = {p: p.operands[p.blocks.index(preheader)] for p in loop.header.phis}
    outs: dict[Instruction, Value] = {phi: _nothing(phi.type) for phi in leave.phis}
    block, copies = preheader, []
    for number, part in enumerate(parts):
        copies.append(_Copy(fn, loop, ends, part.known, last=number == len(parts) - 1))
        block = copies[-1].chain(part, block, now, outs)
    Builder(block).br(leave)
    for phi in leave.phis:
        phi.operands, phi.blocks = [outs[phi]], [block]
    _fold(fn, [block for copy in copies for block in copy.blocks.values()])
    return [copy.blocks[loop.header] for copy, part in zip(copies, parts, strict=True) if not part.once]


def choose(
    fn: Function, loop: Loop, condition: Value, known: dict[Value, Value], otherwise: dict[Value, Value]
) -> list[Block]:
    """Have a loop of which `may_be_cut` holds twice, with what values are known to be where the condition holds, and
    where it does not. Returns the headers."""
    preheader, ends = loop.preheader, _Ends(fn, loop)
    leave = ends.leave
    assert preheader is not None
    preheader.instructions.pop()
    starts: dict[Instruction, Value] = {p: p.operands[p.blocks.index(preheader)] for p in loop.header.phis}
    copies = [_Copy(fn, loop, ends, known, last=False), _Copy(fn, loop, ends, otherwise, last=True)]
    made = [copy.alternative(starts) for copy in copies]
    Builder(preheader).cond_br(condition, *(enter for enter, _, _ in made))
    for phi in leave.phis:
        phi.operands, phi.blocks = [out[phi] for _, _, out in made], [left for _, left, _ in made]
    _fold(fn, [block for copy in copies for block in copy.blocks.values()])
    return [copy.blocks[loop.header] for copy in copies]


def _nothing(kind: ty.Type) -> Constant:
    return ConstInt(kind, 0) if isinstance(kind, ty.IntType) else ConstZero(kind)


class _Ends:
    """The block behind a loop of which `may_be_cut` holds, and where it does not return."""

    def __init__(self, fn: Function, loop: Loop) -> None:
        leave = way_out(fn, loop)
        assert leave is not None
        self.leave, self.dead = leave, dead_ends(fn, loop)


class _Copy:
    """The loop's blocks with what is known in them: copies, or for the last part themselves."""

    def __init__(self, fn: Function, loop: Loop, ends: _Ends, known: dict[Value, Value], *, last: bool) -> None:
        self.fn, self.loop, self.last, self.leave = fn, loop, last, ends.leave
        every = (*loop.blocks, *ends.dead)
        self.blocks, self.values = ({b: b for b in every}, dict[Value, Value]()) if last else copied_blocks(every)
        replaced = {**self.values, **{v: self.values.get(found, found) for v, found in known.items()}}
        for block in self.blocks.values():
            for instr in block.instructions:
                instr.operands = [replaced.get(o, o) for o in instr.operands]

    def alternative(self, starts: dict[Instruction, Value]) -> tuple[Block, Block, dict[Instruction, Value]]:
        """The blocks before and behind the copy, and what it gives the phis of the exit."""
        loop, exits = self.loop, self.leave
        assert loop.latch is not None
        enter, left = Block(), Block()
        header, latch = self.blocks[loop.header], self.blocks[loop.latch]
        ends = self._ends(exits.phis)
        Builder(enter).br(header)
        self._begin(starts, ends, enter)
        latch.terminator.blocks = [b if b is header else left for b in latch.terminator.blocks]
        at = Builder(left)
        out: dict[Instruction, Value] = {phi: at.phi(phi.type, [(ends[phi], latch)]) for phi in exits.phis}
        at.br(exits)
        self._add([enter, left])
        return enter, left, out

    def _ends(self, exits: Sequence[Instruction]) -> dict[Instruction, Value]:
        """What phis of the header and the exit have at the end of an iteration."""
        assert self.loop.latch is not None
        phis = [*self.loop.header.phis, *exits]
        ends = {phi: phi.operands[phi.blocks.index(self.loop.latch)] for phi in phis}
        return {phi: self.values.get(value, value) for phi, value in ends.items()}

    def _begin(self, starts: dict[Instruction, Value], ends: dict[Instruction, Value], enter: Block) -> None:
        assert self.loop.latch is not None
        for phi, value in starts.items():
            own = self.values.get(phi, phi)
            assert isinstance(own, Instruction)
            own.operands, own.blocks = [value, ends[phi]], [enter, self.blocks[self.loop.latch]]

    def _add(self, blocks: list[Block]) -> None:
        added = [*blocks, *(() if self.last else self.blocks.values())]
        place = self.fn.blocks.index(self.loop.header)
        self.fn.blocks[place:place] = added
        for one in added:
            one.function = self.fn

    def chain(self, part: Part, block: Block, now: dict[Instruction, Value], outs: dict[Instruction, Value]) -> Block:
        """Put the part behind a block; `now` and `outs` are what header and exit have before, and from then on. Returns
        where control goes on."""
        loop, starts = self.loop, dict(now)
        assert loop.preheader is not None and loop.latch is not None
        header, latch = self.blocks[loop.header], self.blocks[loop.latch]
        enter, leave, behind = Block(), Block(), Block()
        at = Builder(block)
        if part.runs:
            at.br(enter)
        else:
            at.cond_br(at.icmp("ult", part.low, part.high), enter, behind)
        Builder(enter).br(header)
        ends = self._ends(list(outs))
        if part.once:
            gone = {self.values.get(phi, phi): starts[phi] for phi in now}
            header.instructions = header.instructions[len(header.phis) :]
            for copy in self.blocks.values():
                for instr in copy.instructions:
                    instr.operands = [gone.get(o, o) for o in instr.operands]
            ends = {phi: gone.get(value, value) for phi, value in ends.items()}
            latch.instructions.pop()
            Builder(latch).br(leave)
        else:
            self._begin(starts, ends, enter)
            self._turn(part, header, latch, enter, leave)
        at, on = Builder(leave), Builder(behind)
        for row in (now, outs):
            for phi in row:
                value = at.phi(phi.type, [(ends[phi], latch)])
                row[phi] = value if part.runs else on.phi(phi.type, [(row[phi], block), (value, leave)])
        at.br(behind)
        self._add([enter, leave, behind])
        return behind

    def _turn(self, part: Part, header: Block, latch: Block, enter: Block, leave: Block) -> None:
        """When the part ends: as the loop did, or in an iteration of its own number."""
        last = latch.terminator
        if self.last:
            last.blocks = [b if b is header else leave for b in last.blocks]
            return
        latch.instructions.pop()
        number = Builder(header, 0).phi(ty.I64, [(part.low, enter)])
        at = Builder(latch)
        at.metadata = {key: value for key, value in last.metadata.items() if key == "dbg"}
        after = at.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        at.cond_br(at.icmp("eq", after, part.high), leave, header).metadata = dict(last.metadata)
        number.operands.append(after)
        number.blocks.append(latch)


def _fold(fn: Function, blocks: list[Block]) -> None:
    """Leave out what a condition that is known now never reaches or chooses."""
    replaced: dict[Value, Value] = {}
    exits = {phi for block in blocks for phi in block.phis if len(phi.operands) == 1}  # by which values leave a loop

    def final(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    changed = True
    while changed:
        changed = False
        for block in blocks:
            for instr in block.instructions:
                instr.operands = [final(o) for o in instr.operands]
                value = _folded(instr)
                if value is not None and instr not in replaced:
                    replaced[instr] = value
                    changed = True
    for block in blocks:
        last = block.terminator
        if last.opcode == "br" and last.operands and isinstance(last.operands[0], ConstInt):
            taken = last.blocks[0] if last.operands[0].value else last.blocks[1]
            for other in last.blocks:
                if other is not taken:
                    _forget(other, block)
            last.operands, last.blocks = [], [taken]
            last.metadata = {kind: note for kind, note in last.metadata.items() if kind != "prof"}  # of two ways
    reachable = get(Cfg, fn).reachable
    for block in fn.blocks:
        if block not in reachable:
            for after in dict.fromkeys(block.successors):
                if after in reachable:
                    _forget(after, block)
    fn.blocks = [block for block in fn.blocks if block in reachable]
    for block in blocks:
        for instr in block.instructions:
            if instr.opcode == "phi" and len(instr.operands) == 1 and instr not in exits:
                replaced[instr] = instr.operands[0]
    for instr in fn.instructions():
        instr.operands = [final(o) for o in instr.operands]
    for block in blocks:
        block.instructions = [i for i in block.instructions if i not in replaced]


def _folded(instr: Instruction) -> Value | None:
    """What an operation on truth values comes to."""
    op, rest = instr.opcode, instr.operands
    if op == "select" and isinstance(rest[0], ConstInt):
        return rest[1] if rest[0].value else rest[2]
    if op not in BITWISE or instr.type is not ty.I1:
        return None
    for this, other in ((rest[0], rest[1]), (rest[1], rest[0])):
        if isinstance(this, ConstInt):
            if op == "xor":
                return other if not this.value else None
            return other if bool(this.value) is (op == "and") else this
    return None


def _forget(block: Block, source: Block) -> None:
    """Control does not come to a block from there any longer."""
    for phi in block.phis:
        if source in phi.blocks:
            at = phi.blocks.index(source)
            del phi.operands[at], phi.blocks[at]
