"""A function that several threads run, cut where they wait for each other.

A phase is what a thread does from one barrier to the next: a function of its own, which gets the function's arguments
and the addresses of the thread's variables that live longer than a phase, and returns which phase comes next, 0: none.
All threads meet the same barriers (OpenMP asks for that), so that one may run each phase for all of them.

Values become variables first, and a variable is a phase's own where each phase that reads it has written it before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.parallel.copies import copied_blocks, cut_block

__all__ = ["END", "NONE", "REST", "Phase", "Phases", "split"]

NONE, REST, END = 0, 1, 2
"""What an instruction is to the threads: nothing, a barrier, something that ends with one."""


@dataclass(frozen=True, slots=True)
class Phase:
    """function: `void f(arguments..., variables...)`, `i32` where several phases may follow. after: these, 0: none."""

    function: Function
    after: tuple[int, ...]


@dataclass(slots=True)
class Phases:
    """variables: those of a thread that live longer than a phase, in the order in which phases get their addresses."""

    phases: list[Phase] = field(default_factory=list)
    variables: list[Instruction] = field(default_factory=list)


def split(fn: Function, barrier: Callable[[Instruction], int], plain: Callable[[Instruction], bool]) -> Phases | str:
    """The phases of a function, which is taken apart; or why it cannot be.

    barrier: what an instruction is to the threads; plain: a call that reads and writes what it gets addresses of, and
    keeps none of them
    """
    forward_arguments(fn)
    cuts = _cut(fn, barrier)
    if cuts:
        why = _demote(fn)
        if why:
            return why
        forward_arguments(fn)
    starts = [fn.entry, *cuts.values()]
    reached = [_reached(start, cuts) for start in starts]
    after = [tuple(sorted({starts.index(cuts[b]) if b in cuts else 0 for b in blocks
                           if b in cuts or b.terminator.opcode == "ret"})) for blocks in reached]  # fmt: skip
    variables = [i for i in fn.entry.instructions if i.opcode == "alloca"]
    kept = _kept(fn, variables, reached, after, plain)
    found = Phases(variables=[v for v in variables if v in kept])
    for number, blocks in enumerate(reached):
        found.phases.append(Phase(_phase(fn, number, starts, blocks, cuts, variables, found.variables), after[number]))
    return found


def forward_arguments(fn: Function) -> None:
    """Use arguments where they are read from variables that hold nothing else: `-O0` writes each to memory."""
    found: dict[Value, Value] = {}
    entry = fn.entry
    while True:
        uses = uses_of(fn.blocks)
        gone: set[Instruction] = set()
        for variable in [i for i in entry.instructions if i.opcode == "alloca"]:
            users = uses.get(variable, [])
            stores = [u for u in users if u.opcode == "store"]
            loads = [u for u in users if u.opcode == "load"]
            if len(stores) != 1 or not loads or len(stores) + len(loads) != len([u for u in users if not _marks(u)]):
                continue
            store = stores[0]
            value = store.operands[0]
            lasting = isinstance(value, Argument | Constant) or (
                isinstance(value, Instruction) and value.opcode == "alloca" and value.block is entry)  # fmt: skip
            before = entry.instructions[: entry.instructions.index(store)] if store.block is entry else loads
            if not lasting or value is variable or any(load in before or load.type is not value.type for load in loads):
                continue
            found.update(dict.fromkeys(loads, value))
            gone |= {store, *loads, *(u for u in users if _marks(u)), variable}
        if not gone:
            return
        for block in fn.blocks:
            block.instructions = [i for i in block.instructions if i not in gone]
        replace_uses(fn, found)


def _marks(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "").startswith("llvm.lifetime.")


def _cut(fn: Function, barrier: Callable[[Instruction], int]) -> dict[Block, Block]:
    """Cut blocks at barriers: the block behind each of those that end with one, which has no terminator of its own."""
    cuts: dict[Block, Block] = {}
    work = list(fn.blocks)
    for block in work:
        for at, instr in enumerate(block.instructions):
            kind = barrier(instr) if instr.opcode == "call" else NONE
            if kind != NONE:
                cuts[block] = cut_block(fn, block, at + 1)
                if kind == REST:
                    block.instructions.pop()
                work.append(cuts[block])
                break
    if cuts:
        for block in fn.blocks:
            block.instructions = [i for i in block.instructions if not _marks(i)]
    return cuts


def _demote(fn: Function) -> str:
    """Keep in variables what is used in other blocks than its own; or why that cannot be."""
    entry = fn.entry
    for instr in list(fn.instructions()):
        if instr.opcode == "alloca":
            if instr.block is not entry or not isinstance(instr.operands[0], ConstInt):
                return "it reserves memory of a length that is not constant"
            continue
        if instr.is_call and (instr.callee_name or "").startswith("llvm.stacksave"):
            return "it reserves memory of a length that is not constant"
    uses = uses_of(fn.blocks)
    for instr in list(fn.instructions()):
        block = instr.block
        assert block is not None
        far = [u for u in dict.fromkeys(uses.get(instr, ())) if u.block is not block or u.opcode == "phi"]
        if instr.opcode == "alloca" or not far:
            continue
        if str(instr.type) in ("token", "label", "metadata"):
            return "it has values that no variable can hold"
        slot = Builder(entry, 0).alloca(instr.type)
        if instr.opcode == "invoke":
            Builder(_behind(fn, instr), 0).store(instr, slot)
        else:
            place = len(block.phis) if instr.opcode == "phi" else block.instructions.index(instr) + 1
            Builder(block, place).store(instr, slot)
        for user in far:
            if user.opcode != "phi":
                assert user.block is not None
                again = Builder(user.block, user.block.instructions.index(user)).load(instr.type, slot)
                user.operands = [again if o is instr else o for o in user.operands]
                continue
            for n, (value, before) in enumerate(zip(user.operands, user.blocks, strict=True)):
                if value is instr:
                    user.operands[n] = Builder(before, _end(before)).load(instr.type, slot)
    return ""


def _behind(fn: Function, invoke: Instruction) -> Block:
    """A block to which only a call comes that returned."""
    assert invoke.block is not None
    between, after = Block(), invoke.blocks[0]
    between.function = fn
    Builder(between).br(after)
    invoke.blocks = [between, *invoke.blocks[1:]]
    for phi in after.phis:
        phi.blocks = [between if b is invoke.block else b for b in phi.blocks]
    fn.blocks.insert(fn.blocks.index(invoke.block) + 1, between)
    return between


def _end(block: Block) -> int:
    last = block.instructions[-1] if block.instructions else None
    return len(block.instructions) - (last is not None and last.is_terminator)


def _reached(start: Block, cuts: dict[Block, Block]) -> list[Block]:
    found, work = {start: None}, [start]
    while work:
        block = work.pop()
        for after in block.successors if block not in cuts else ():
            if after not in found:
                found[after] = None
                work.append(after)
    return list(found)


# -- variables ---------------------------------------------------------------------------------------------------------


def _kept(
    fn: Function, variables: Sequence[Instruction], reached: Sequence[list[Block]], after: Sequence[tuple[int, ...]],
    plain: Callable[[Instruction], bool],
) -> set[Instruction]:  # fmt: skip
    """The variables that live longer than a phase."""
    if len(reached) == 1:
        return set()
    uses = uses_of(fn.blocks)
    again = {n for n in range(len(reached)) if n in _follow(n, after)}
    kept: set[Instruction] = set()
    for variable in variables:
        users, leaves = _users(variable, uses, plain)
        within = {n for n, blocks in enumerate(reached) if any(u.block in blocks for u in users)}
        if leaves:
            kept.add(variable)
        elif all(_whole(u, variable, plain) for u in users):
            if any(_reads_first(variable, blocks, plain) for n, blocks in enumerate(reached) if n in within):
                kept.add(variable)
        elif len(within) > 1 or within & again:
            kept.add(variable)
    return kept


def _follow(number: int, after: Sequence[tuple[int, ...]]) -> set[int]:
    """The phases that may come after one."""
    found: set[int] = set()
    work = [number]
    while work:
        for n in after[work.pop()]:
            if n and n not in found:
                found.add(n)
                work.append(n)
    return found


def _users(
    variable: Instruction, uses: dict[Value, list[Instruction]], plain: Callable[[Instruction], bool]
) -> tuple[list[Instruction], bool]:
    """What uses a variable or an address in it, and whether its address goes elsewhere."""
    found, work, leaves = [], [variable], False
    for value in work:
        for user in uses.get(value, ()):
            found.append(user)
            if user.opcode == "getelementptr":
                work.append(user)
            elif user.opcode == "store" and user.operands[0] is not value:
                continue
            elif user.opcode != "load" and not plain(user):
                leaves = True
    return found, leaves


def _whole(user: Instruction, variable: Instruction, plain: Callable[[Instruction], bool]) -> bool:
    """Whether an instruction reads or writes all of a variable, as a value."""
    kind = user.type if user.opcode == "load" else user.operands[0].type if user.opcode == "store" else None
    if kind is None:
        return plain(user)
    return variable.elem is not None and ty.store_size(kind) == ty.size_of(variable.elem)


def _reads_first(variable: Instruction, blocks: Sequence[Block], plain: Callable[[Instruction], bool]) -> bool:
    """Whether a phase may read a variable that it has not written."""
    inside = set(blocks)
    seen, work = {blocks[0]}, [blocks[0]]
    while work:
        block = work.pop()
        first = next((i for i in block.instructions if variable in i.operands), None)
        if first is not None:
            if first.opcode != "store":
                return True
            continue
        for after in block.successors:
            if after in inside and after not in seen:
                seen.add(after)
                work.append(after)
    return False


# -- functions ---------------------------------------------------------------------------------------------------------


def _phase(
    fn: Function, number: int, starts: Sequence[Block], blocks: Sequence[Block], cuts: dict[Block, Block],
    variables: Sequence[Instruction], kept: Sequence[Instruction],
) -> Function:  # fmt: skip
    ends = {starts.index(cuts[b]) if b in cuts else 0 for b in blocks if b in cuts or b.terminator.opcode == "ret"}
    result = ty.I32 if len(ends) > 1 else ty.VOID
    made = Function(f"{fn.name}.phase.{number}",
                    ty.function(result, (*(a.type for a in fn.args), *(ty.PTR for _ in kept))))  # fmt: skip
    made.head, made.tail = fn.head, fn.tail
    for old, new in zip(fn.args, made.args, strict=False):
        new.attrs = old.attrs
    known: dict[Value, Value] = {**dict(zip(fn.args, made.args, strict=False)),
                                 **dict(zip(kept, made.args[len(fn.args) :], strict=True))}  # fmt: skip
    first = Block()
    at = Builder(first)
    for variable in variables:
        if variable not in kept and any(variable in i.operands for block in blocks for i in block.instructions):
            known[variable] = at.alloca(variable.elem or ty.I8, variable.operands[0], variable.align)
    for block in fn.blocks:
        block.instructions = [i for i in block.instructions if i not in variables]
    copies = copied_blocks(blocks, known)
    at.br(copies[0])
    inside = set(copies)
    for block, copy in zip(blocks, copies, strict=True):
        for phi in copy.phis:  # other ways to it are in other phases
            rows = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b in inside]
            phi.operands, phi.blocks = [v for v, _ in rows], [b for _, b in rows]
        end = Builder(copy)
        code = ConstInt(ty.I32, starts.index(cuts[block]) if block in cuts else 0)
        if block in cuts:
            end.ret(code if result is ty.I32 else None)
        elif copy.terminator.opcode == "ret" and result is ty.I32:
            copy.instructions.pop()
            end.ret(code)
    made.blocks = [first, *copies]
    for block in made.blocks:
        block.function = made
    return made
