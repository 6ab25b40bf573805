"""Loops over small arrays of the stack, on a device: written out, so that the arrays become registers.

A device has no fast memory for an array whose subscript varies: it lies in the memory of the device, beside those of
all other threads. Written out, the subscripts are constants, and LLVM makes registers of the elements.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import note_loops

__all__ = ["write_out_loops"]

_SAME = having("same_memory")
_TURNS = 32
_INSTRUCTIONS = 4096
_BYTES = 256


def write_out_loops(module: Module) -> None:
    """Mark loops of a constant number of turns, at most 32, that go over small arrays of the stack: to be unrolled."""
    found = [loop.latches for fn in module.functions.values() for loop in _loops(fn)]
    note_loops(module, found, "llvm.loop.unroll.full")


def _loops(fn: Function) -> list[Loop]:
    arrays = {i for i in fn.instructions() if i.opcode == "alloca" and _small(i)} if fn.blocks else set()
    if not arrays:
        return []
    induction, found = Induction(fn), []
    for loop in get(Loops, fn).all:
        count = induction.trip_count(loop)
        turns = None if count is None or count.const is None else count.const + 1
        size = sum(len(block.instructions) for block in loop.blocks)
        if turns is None or turns > _TURNS or turns * size > _INSTRUCTIONS:
            continue
        if any(_goes_over(loop, instr, arrays) for block in loop.blocks for instr in block.instructions):
            found.append(loop)
    return found


def _small(memory: Instruction) -> bool:
    count = memory.operands[0]
    return isinstance(count, ConstInt) and memory.elem is not None and count.value * ty.size_of(memory.elem) <= _BYTES


def _goes_over(loop: Loop, instr: Instruction, arrays: set[Instruction]) -> bool:
    """Whether an instruction makes an address in one of some arrays by a subscript that the loop changes."""
    if instr.opcode != "getelementptr" or not any(_inside(loop, o) for o in instr.operands[1:]):
        return False
    base: Value = instr.operands[0]
    while isinstance(base, Instruction) and base.opcode in _SAME:
        pointers = [o for o in base.operands if o.type.is_ptr]
        if len(pointers) != 1:
            return False
        base = pointers[0]
    return base in arrays


def _inside(loop: Loop, value: Value) -> bool:
    return isinstance(value, Instruction) and value.block is not None and loop.contains(value.block)
