"""Sections that one thread of a region runs at a time: they stay visible as pairs of fences.

    #pragma omp critical            fence syncscope("singlethread") acquire
    if (v > m) m = v;               ...
                                    fence syncscope("singlethread") release

The machine does nothing for such a fence, and LLVM moves no access to shared memory across one. What is between the two
is known when loops are brought to threads (`threads/distribution.py`): accesses there may meet those of other
iterations. Kernels that no threads share have no such fences. The same holds of atomic operations that the machine does
not have, which clang writes as loops of compare-and-exchange: those of regions are sections of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = [
    "BEGIN", "END", "in_sections", "is_section_fence", "with_exchanges_as_sections", "with_fences", "without_fences",
]  # fmt: skip

BEGIN, END = 'fence syncscope("singlethread") acquire', 'fence syncscope("singlethread") release'
_CALL = re.compile(r"^( +)(?:tail )?call void @__kmpc_(end_)?(?:critical|critical_with_hint)\([^\n]*?\)"
                   r"(?: #\d+)?((?:, ![^\n]*)?)$", re.M)  # fmt: skip
_FENCE = re.compile(r'^ +fence syncscope\("singlethread"\) (?:acquire|release)[^\n]*\n', re.M)
_REGION = ".omp_outlined"


def with_fences(text: str) -> str:
    """The module with fences around critical sections."""
    return _CALL.sub(lambda found: f"{found[1]}{END if found[2] else BEGIN}{found[3]}", text)


def without_fences(text: str) -> str:
    """The module without any."""
    return _FENCE.sub("", text)


def is_section_fence(instr: Instruction) -> bool:
    """Whether a fence is one of these."""
    return instr.opcode == "fence" and "singlethread" in instr.ordering


def in_sections(blocks: Collection[Block]) -> set[Instruction] | None:
    """The instructions of some blocks, which are entered outside of sections, that are in sections; None where that
    depends on the way to them."""
    found: set[Instruction] = set()
    before: dict[Block, bool] = {}
    inside = {*blocks}
    entries = [b for b in blocks if not any(b in other.successors for other in blocks if other is not b)]
    work = [(block, False) for block in entries or [next(iter(blocks))]]
    while work:
        block, held = work.pop()
        if block in before:
            if before[block] != held:
                return None
            continue
        before[block] = held
        for instr in block.instructions:
            if is_section_fence(instr):
                if held == ("acquire" in instr.ordering):
                    return None
                held = not held
            elif held:
                found.add(instr)
        work += [(after, held) for after in dict.fromkeys(block.successors) if after in inside]
    return found


# -- loops of compare-and-exchange ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Such a loop, of one block: the first load, the phi of what was seen, the exchange."""

    load: Instruction
    old: Instruction
    swap: Instruction


def with_exchanges_as_sections(text: str) -> str:
    """The module with critical sections in place of the loops of compare-and-exchange of its regions."""
    if " cmpxchg " not in text:
        return text
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    names = [name for name, body in function_bodies(text).items() if _REGION in name and " cmpxchg " in body]
    module, done = read(text, roots=names), False
    for name in names:
        fn = module.functions[name]
        uses = uses_of(fn.blocks)
        for made in [found for block in fn.blocks if (found := _exchange(block, uses)) is not None]:
            _settle(module, fn, made, uses)
            done = True
    return to_text(module) if done else text


def _exchange(block: Block, uses: Uses) -> _Exchange | None:
    end = block.terminator
    swaps = [i for i in block.instructions if i.opcode == "cmpxchg"]
    if len(swaps) != 1 or len(block.phis) != 1 or end.opcode != "br" or len(end.operands) != 1:
        return None
    swap, old = swaps[0], block.phis[0]
    if swap.operands[1] is not old or swap.volatile or end.blocks[1] is not block or len(old.operands) != 2:
        return None
    loads = [v for v, b in zip(old.operands, old.blocks, strict=True) if b is not block]
    again = [v for v, b in zip(old.operands, old.blocks, strict=True) if b is block]
    if len(loads) != 1 or not _part(again[0], swap, 0) or not _part(end.operands[0], swap, 1):
        return None
    load = loads[0]
    if not isinstance(load, Instruction) or load.opcode != "load" or load.volatile or list(uses.get(load, ())) != [old]:
        return None
    place = load.block is not None and load.operands[0] is swap.operands[0] and load.block.successors == [block]
    before = load.block.instructions if load.block is not None else []
    rows = [*before[before.index(load) + 1 : -1], *(i for i in block.instructions if i not in (swap, old, end))]
    plain = all(i.opcode in PURE or _own(i) for i in rows)
    parts = all(u.opcode == "extractvalue" for u in uses.get(swap, ()))
    return _Exchange(load, old, swap) if place and plain and parts else None


def _part(value: Value, swap: Instruction, at: int) -> bool:
    return (isinstance(value, Instruction) and value.opcode == "extractvalue" and value.operands[0] is swap
            and list(value.indices) == [at])  # fmt: skip


def _own(instr: Instruction) -> bool:
    """Whether an instruction reads or writes a variable of the function."""
    if instr.opcode not in ("load", "store") or instr.volatile or instr.ordering:
        return False
    variable = instr.operands[instr.traits.address]
    return isinstance(variable, Instruction) and variable.opcode == "alloca"


def _settle(module: Module, fn: Function, made: _Exchange, uses: Uses) -> None:
    """Load, operation and store: nobody comes between in a section."""
    load, old, swap = made.load, made.old, made.swap
    block, before = swap.block, load.block
    assert block is not None and before is not None
    end = block.terminator
    debug = {"dbg": swap.metadata["dbg"]} if "dbg" in swap.metadata else {}
    for name, place, number in (("__kmpc_critical", before, before.instructions.index(load)),
                                ("__kmpc_end_critical", block, block.instructions.index(swap) + 1)):  # fmt: skip
        callee = declare(module, name, ty.VOID, (ty.PTR, ty.I32, ty.PTR))
        builder = Builder(place, number)
        builder.metadata = debug
        builder.call(callee, [ConstZero(ty.PTR), ConstInt(ty.I32, 0), ConstZero(ty.PTR)])
    load.ordering = ""
    said = {key: node for key, node in load.metadata.items() if key in ("dbg", "tbaa")}
    Builder(block, block.instructions.index(swap)).store(swap.operands[2], swap.operands[0], swap.align, said)
    replaced: dict[Value, Value] = {old: load}
    gone = [old, swap]
    for user in uses.get(swap, ()):
        replaced[user] = ConstInt(user.type, 1) if _part(user, swap, 1) else load
        gone.append(user)
    leave = end.blocks[0]
    for row in fn.blocks:
        row.instructions = [i for i in row.instructions if i not in gone]
    block.instructions.remove(end)
    at = Builder(block)
    at.metadata = {"dbg": end.metadata["dbg"]} if "dbg" in end.metadata else {}
    at.br(leave)
    replace_uses(fn, replaced)
