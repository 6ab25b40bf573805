"""Choices that are told to be rare become branches, with what only their rare side needs.

    k = fcmp olt v, m                                       k = fcmp olt v, m
    n = maxnum(m, v);  c = fcmp ugt n, m                    br k, next, rare        rare: n = ..., c = ..., p = ...
    p = select c, a, w                             ->       next: m' = phi(m, n), w' = phi(w, p)
    m' = select k, m, n;  w' = select k, w, p
    (the first sides far more often)

LLVM makes branches of them when it selects instructions: too late for what is used more than once behind one (of a
maximum with its place, a maximum, a comparison and two choices for each number), and the side that is nearly always
taken may be the one that copies registers. Its own pass for that (`-disable-select-optimize=false`) makes branches of
choices that nobody can foresee, too (k-means takes 1.8 of the time).

Done when machine code is made, so that the derivative of a derivative sees choices.

Without this, `benchmarks.run logsumexp` takes 1.3 of the time.
"""

from __future__ import annotations

import re

from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["branch_rarely", "rare_choices"]

OFTEN = 1 << 16
"""Times that one side is taken for each time of the other, from which on that one is rare: more than what compilers say
of a programmer's `__builtin_expect` (2,000), whose choices may be lanes of a vector."""

_CHOICE = re.compile(r"^  \S+ = select .*!prof ", re.MULTILINE)
_WEIGHTS = re.compile(r'!\{!"branch_weights", (?:!"expected", )?i32 (\d+), i32 (\d+)\}')
_FUNCTIONS = ("llvm.maxnum.", "llvm.minnum.", "llvm.maximum.", "llvm.minimum.", "llvm.maximumnum.", "llvm.minimumnum.",
              "llvm.fabs.", "llvm.fmuladd.", "llvm.fma.", "llvm.sqrt.")  # fmt: skip


def branch_rarely(text: str) -> str:
    """Rare choices become branches; the same text where a module has none."""
    if _CHOICE.search(text) is None:
        return text
    # What is linked after this, guards among it, calls what is not declared yet: it is left as text.
    chosen = [name for name, body in function_bodies(text).items() if _CHOICE.search(body)]
    module = read(text, roots=chosen, reach=False)
    return to_text(module) if rare_choices(module) else text


def rare_choices(module: Module) -> int:
    """Branches in place of choices in a module; how many branches."""
    count = 0
    for fn in module.functions.values():
        if any(_rare_side(module, instr) for instr in fn.instructions()):
            work = list(fn.blocks)
            while work:
                rest = _branch(module, fn, work.pop())
                if rest is not None:
                    work.append(rest)
                    count += 1
    return count


def _rare_side(module: Module, instr: Instruction) -> int:
    """Which operand of a choice is rarely taken, 1 or 2; 0 for none, and for what is no choice."""
    if instr.opcode != "select" or "prof" not in instr.metadata or instr.operands[0].type.is_vector:
        return 0
    found = _WEIGHTS.match(module.metadata.get(instr.metadata["prof"], ""))
    first, second = (int(found[1]), int(found[2])) if found else (1, 1)
    return 1 if second >= OFTEN * max(first, 1) else 2 if first >= OFTEN * max(second, 1) else 0


def _branch(module: Module, fn: Function, block: Block) -> Block | None:
    """Take a block apart at its first rare choices. Returns its second part."""
    for at, instr in enumerate(block.instructions):
        side = _rare_side(module, instr)
        if side:
            choices = _choices(module, block, at, side)
            return _split(fn, block, choices, side, _only_for(block, choices, side, uses_of(fn.blocks)))
    return None


def _choices(module: Module, block: Block, at: int, side: int) -> list[Instruction]:
    """The choices of a block by the condition of one of them, as far as one may stand where the others do."""
    first = block.instructions[at]
    found: set[Value] = {first}
    for instr in block.instructions[at + 1 :]:
        if any(operand in found for operand in instr.operands):
            break
        if instr.operands and instr.operands[0] is first.operands[0] and _rare_side(module, instr) == side:
            found.add(instr)
    return [instr for instr in block.instructions if instr in found]


def _only_for(block: Block, choices: list[Instruction], side: int, uses: Uses) -> set[Instruction]:
    """What a block computes for the rare sides of choices alone."""
    found: set[Instruction] = set()

    def rare(user: Instruction, value: Value) -> bool:
        return user in found or (
            user in choices and all((o is value) <= (n == side) for n, o in enumerate(user.operands))
        )

    for instr in reversed(block.instructions[: block.instructions.index(choices[-1])]):
        if _movable(instr) and all(rare(user, instr) for user in uses.get(instr, ())) and uses.get(instr):
            found.add(instr)
    return found


def _movable(instr: Instruction) -> bool:
    if instr.is_call:
        return (instr.callee_name or "").startswith(_FUNCTIONS)
    return instr.opcode in SPECULATABLE and instr.opcode != "phi"


def _split(fn: Function, block: Block, choices: list[Instruction], side: int, moved: set[Instruction]) -> Block:
    last = block.instructions.index(choices[-1])
    before, behind = block.instructions[: last + 1], block.instructions[last + 1 :]
    rare, rest = Block(), Block()
    rare.function = rest.function = fn
    where = fn.blocks.index(block) + 1
    fn.blocks[where:where] = [rare, rest]
    block.instructions = [instr for instr in before if instr not in moved and instr not in choices]
    ways = (rare, rest) if side == 1 else (rest, rare)
    end = Builder(block).cond_br(choices[0].operands[0], *ways)
    end.metadata["prof"] = choices[0].metadata["prof"]
    for instr in before:
        if instr in moved:
            Builder(rare).insert(instr)
    Builder(rare).br(rest)
    b, replaced = Builder(rest), dict[Value, Value]()
    for choice in choices:
        common, seldom = choice.operands[3 - side], choice.operands[side]
        replaced[choice] = b.phi(choice.type, [(common, block), (seldom, rare)])
    for instr in behind:
        b.insert(instr)
    for successor in rest.successors:
        for phi in successor.phis:
            phi.blocks = [rest if source is block else source for source in phi.blocks]
    replace_uses(fn, replaced)
    return rest
