"""Def-use chains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from irgrad.engine.ir.model import Block, Instruction, Value

__all__ = ["Uses", "uses_of"]

Uses: TypeAlias = Mapping[Value, list[Instruction]]


def uses_of(blocks: Iterable[Block]) -> dict[Value, list[Instruction]]:
    """The instructions that use each value, in order; one that uses it twice stands there twice. A snapshot."""
    found: dict[Value, list[Instruction]] = {}
    for block in blocks:
        for instr in block.instructions:
            for operand in instr.operands:
                users = found.get(operand)
                if users is None:
                    found[operand] = [instr]
                else:
                    users.append(instr)
    return found
