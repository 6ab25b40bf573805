"""Small steps of rewriting that passes share: new operands, copies of instructions, declarations."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction, Module, Value

__all__ = ["copied", "declare", "replace_uses"]


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
