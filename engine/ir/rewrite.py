"""Small steps of rewriting that passes share: new operands, copies of instructions, declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from zlib import crc32

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstData, Function, GlobalVariable, Instruction, Module, Value

__all__ = ["copied", "copied_blocks", "declare", "internal_function", "note_loops", "personality", "replace_uses",
           "scalar_tag", "text_constant"]  # fmt: skip


def replace_uses(fn: Function, replaced: dict[Value, Value]) -> None:
    """Use the new values wherever the old ones were used."""

    def final(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    for instr in fn.instructions():
        instr.operands = [final(o) for o in instr.operands]


def declare(module: Module, name: str, ret: ty.Type, params: tuple[ty.Type, ...], tail: str = "") -> Function:
    """The function of that name, declared when the module lacks it."""
    if name not in module.functions:
        fn = Function(name, ty.function(ret, params))
        fn.tail = tail
        module.functions[name] = fn
    return module.functions[name]


def copied(instr: Instruction, operands: list[Value]) -> Instruction:
    """The same instruction on other operands."""
    return Instruction(
        instr.opcode, instr.type, operands, flags=instr.flags, pred=instr.pred, elem=instr.elem, align=instr.align,
        indices=instr.indices, call=instr.call, metadata=dict(instr.metadata),
    )  # fmt: skip


def copied_blocks(blocks: Iterable[Block]) -> tuple[dict[Block, Block], dict[Value, Value]]:
    """Copies of blocks, in no function yet, which lead to each other where the blocks do; and of each value its copy,
    on the operands that it had."""
    copies = {block: Block(block.name) for block in blocks}
    values: dict[Value, Value] = {}
    for block, new in copies.items():
        for instr in block.instructions:
            made = copied(instr, list(instr.operands))
            made.blocks = [copies.get(b, b) for b in instr.blocks]
            made.volatile, made.ordering, made.name = instr.volatile, instr.ordering, instr.name
            made.block = new
            new.instructions.append(made)
            values[instr] = made
    return copies, values


def note_instructions(module: Module, rows: Iterable[Instruction], word: str) -> None:
    """Have metadata of a name, with nothing in it, on some instructions."""
    node = f"!{1 + max((int(name[1:]) for name in module.metadata if name[1:].isdecimal()), default=-1)}"
    module.metadata[node] = "!{}"
    for row in rows:
        row.metadata[word] = node


def note_loops(module: Module, latches: Iterable[Sequence[Block]], word: str) -> None:
    """Tell LLVM of loops what `word` says (`llvm.loop.unroll.disable`, language reference); a loop by its latches."""
    first = 1 + max((int(name[1:]) for name in module.metadata if name[1:].isdecimal()), default=-1)
    for node, row in enumerate(latches, start=first + 1):
        module.metadata[f"!{first}"] = f'!{{!"{word}"}}'
        module.metadata[f"!{node}"] = f"distinct !{{!{node}, !{first}}}"
        for latch in row:
            latch.terminator.metadata["llvm.loop"] = f"!{node}"


def note_choice(module: Module, choice: Instruction, first: int, second: int) -> None:
    """Tell LLVM how often the first and the second side of a select or branch are taken (`branch_weights`)."""
    text = f'!{{!"branch_weights", i32 {first}, i32 {second}}}'
    node = next((name for name, body in module.metadata.items() if body == text), None)
    if node is None:
        node = f"!{1 + max((int(name[1:]) for name in module.metadata if name[1:].isdecimal()), default=-1)}"
        module.metadata[node] = text
    choice.metadata["prof"] = node


def scalar_tag(module: Module, root: str, name: str) -> str:
    """The node of `!tbaa` of accesses to numbers of a type, by its name and that of the root of types (made anew)."""
    first = 1 + max((int(node[1:]) for node in module.metadata if node[1:].isdecimal()), default=-1)
    module.metadata[f"!{first}"] = f'!{{!"{root}"}}'
    module.metadata[f"!{first + 1}"] = f'!{{!"{name}", !{first}, i64 0}}'
    module.metadata[f"!{first + 2}"] = f"!{{!{first + 1}, !{first + 1}, i64 0}}"
    return f"!{first + 2}"


def personality(fn: Function) -> str:
    """What a function says of how exceptions are taken in it, nothing where none is."""
    found = re.search(r"\bpersonality ptr @[\w.$]+", fn.tail)
    return found[0] if found else ""


def internal_function(source: Function, module: Module, name: str, ret: ty.Type, params: Sequence[ty.Type]) -> Function:
    """A new function of the module, without blocks yet, which stays out of line: for a part of `source`, and takes
    exceptions as that does."""
    fn = Function(name, ty.function(ret, tuple(params)))
    fn.head, fn.tail = "internal", f"noinline {personality(source) or 'nounwind'}"
    module.functions[name] = fn
    return fn


def text_constant(module: Module, text: str) -> GlobalVariable:
    """A constant string of the module."""
    data = text.encode("utf-8", "surrogateescape") + b"\0"
    name = f"irgrad.text.{crc32(data):x}"
    if name not in module.globals:
        kind = ty.array(len(data), ty.I8)
        module.globals[name] = GlobalVariable(name, kind, ConstData(kind, data), True, "internal unnamed_addr")
    return module.globals[name]
