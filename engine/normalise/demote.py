"""Values of a loop that are used outside of it leave it by a phi at an exit.

LLVM's LCSSA form has the phis already; passes that fold phis or copy loops lose some. Where one exit leads to a use,
its phi is made again. Where several do, the value goes through a stack variable: that is rare, so the simple way will
do.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction

Use = tuple[Instruction, int]
"""An instruction and the number of its operand."""


def close_loops(fn: Function) -> int:
    """Have all values leave their loops through exit phis, or through memory. Returns how many did not."""
    cfg = get(Cfg, fn)
    loops = get(Loops, fn)
    if not loops.top:
        return 0
    uses: dict[Instruction, list[Use]] = {}
    for block in cfg.rpo:
        for instr in block.instructions:
            for i, operand in enumerate(instr.operands):
                if isinstance(operand, Instruction) and operand.block is not None:
                    loop = loops.of(operand.block)
                    if loop is not None and not loop.contains(_where((instr, i))):
                        uses.setdefault(operand, []).append((instr, i))
    closing = _Closing(fn, loops)
    for value, places in uses.items():
        through_memory = closing.close(value, places)
        if through_memory:
            demote(fn, value, through_memory)
    return len(uses)


class _Closing:
    def __init__(self, fn: Function, loops: Loops) -> None:
        self.loops = loops
        self.before: dict[Block, list[Block]] = {}  # also blocks that nothing leads to
        for block in fn.blocks:
            for after in dict.fromkeys(block.successors):
                self.before.setdefault(after, []).append(block)

    def close(self, value: Instruction, places: list[Use]) -> list[Use]:
        """Give the uses the phis of exits; those that no one exit leads to are returned."""
        assert value.block is not None
        loop = self.loops.of(value.block)
        phis: dict[Block, Instruction] = {}
        outer: dict[Instruction, list[Use]] = {}
        left: list[Use] = []
        for place in places:
            exit_ = self._exit(loop, value.block, _where(place)) if loop is not None else None
            if exit_ is None:
                left.append(place)
                continue
            if exit_ not in phis:
                phis[exit_] = self._phi(value, exit_)
            phi = phis[exit_]
            place[0].operands[place[1]] = phi
            around = self.loops.of(exit_)
            if around is not None and not around.contains(_where(place)):
                outer.setdefault(phi, []).append(place)
        for phi, further in outer.items():
            for user, i in self.close(phi, further):
                user.operands[i] = value
                left.append((user, i))
        return left

    def _exit(self, loop: Loop, home: Block, where: Block) -> Block | None:
        """The exit that all ways from the loop to a block go through last, and that only the loop leads to."""
        dominates = self.loops.dom.dominates
        found = [e for e in loop.exits if dominates(e, where) and dominates(home, e)]
        found = [e for e in found if all(loop.contains(p) for p in self.before[e])]
        return found[0] if len(found) == 1 else None

    def _phi(self, value: Instruction, exit_: Block) -> Instruction:
        blocks = self.before[exit_]
        line = {key: text for key, text in value.metadata.items() if key == "dbg"}
        phi = Instruction("phi", value.type, [value] * len(blocks), blocks=blocks, metadata=line)
        _insert(exit_, 0, phi)
        return phi


def _where(use: Use) -> Block:
    """The block in which an operand has to be there."""
    instr, i = use
    where = instr.blocks[i] if instr.opcode == "phi" else instr.block
    assert where is not None
    return where


def demote(fn: Function, value: Instruction, places: list[Use]) -> None:
    """Store `value` where it is computed and load it at the given uses."""
    cell = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=value.type, align=ty.align_of(value.type))
    _insert(fn.entry, 0, cell)
    assert value.block is not None
    home = value.block
    at = home.instructions.index(value) + 1
    while home.instructions[at].opcode == "phi":
        at += 1
    _insert(home, at, Instruction("store", ty.VOID, [value, cell], align=cell.align))
    for user, i in places:
        load = Instruction("load", value.type, [cell], align=cell.align)
        if user.opcode == "phi":
            source = user.blocks[i]
            _insert(source, len(source.instructions) - 1, load)
        else:
            assert user.block is not None
            _insert(user.block, user.block.instructions.index(user), load)
        user.operands[i] = load


def _insert(block: Block, at: int, instr: Instruction) -> None:
    instr.block = block
    block.instructions.insert(at, instr)
