"""The pass: calls of `llvm.x86.*` that the tables know become generic IR."""

from __future__ import annotations

import re
from functools import lru_cache

from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.normalise.x86 import arithmetic, conversions, movement
from irgrad.engine.normalise.x86.site import Recipe, Site

__all__ = ["PREFIX", "lower_vector_intrinsics"]

PREFIX = "llvm.x86."
_PLAIN = arithmetic.ROWS | conversions.ROWS | movement.ROWS
_ROUNDED = arithmetic.ROUNDED | conversions.ROUNDED
_AS_SET, _NEAREST = 4, 8
"""Roundings: as the machine is set, which is to the nearest; to the nearest, and raise no flag. Others are left, and
derivatives through them refused: LLVM has no generic operation that rounds to one side."""


def lower_vector_intrinsics(module: Module, fn: Function) -> bool:
    """Take the calls of one function apart. Returns whether there were any."""
    replaced: dict[Value, Value] = {}
    changed = False
    for block in fn.blocks:
        if not any(_recipe_of(instr) for instr in block.instructions):
            continue
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instr in old:
            recipe = _recipe_of(instr)
            if recipe is None:
                block.instructions.append(instr)
                continue
            b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
            name = (instr.callee_name or "").removeprefix(PREFIX)
            made = recipe(Site(module, b, name, instr.args, instr.type))
            if made is not None:
                replaced[instr] = made
            elif instr.type.text != "void":
                block.instructions.append(instr)
            changed = True
    if replaced:
        replace_uses(fn, replaced)
    return changed


def _recipe_of(instr: Instruction) -> Recipe | None:
    name = instr.callee_name if instr.opcode == "call" else None
    if name is None or not name.startswith(PREFIX):
        return None
    recipe, rounded = _find(name.removeprefix(PREFIX))
    if rounded:
        way = instr.args[-1]
        if not isinstance(way, ConstInt) or way.value not in (_AS_SET, _NEAREST):
            return None
    return recipe


@lru_cache(maxsize=4096)
def _find(name: str) -> tuple[Recipe | None, bool]:
    """What the tables have of a name, and whether its last operand is a rounding."""
    for table, rounded in ((_PLAIN, False), (_ROUNDED, True)):
        for pattern, recipe in table.items():
            if re.fullmatch(pattern, name):
                return recipe, rounded
    return None, False
