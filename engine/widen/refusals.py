"""What cannot be widened: the error, and what to change in the source so that it can."""

from __future__ import annotations

from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.rules.errors import Unsupported

__all__ = [
    "AS_ARGUMENT", "BY_INDEX", "CALLED", "FLAT", "LOCAL", "NUMBERS", "OTHERWISE", "SMALLER", "TOGETHER", "placed",
    "refuse",
]  # fmt: skip

OTHERWISE = 'width="auto" runs sample after sample where samples cannot be lanes'
BY_INDEX = "read from both places and choose between the values, or choose an index and not a pointer"
AS_ARGUMENT = ("pass arrays as arguments of their own, not as pointers in structs, tables or objects, and call "
               "functions by their names, not virtually or by pointers")  # fmt: skip
FLAT = ("leave the loop at its condition, and not with `break` or `return` inside: keep in a variable that a sample "
        "has ended; or choose between two values, `c ? a : b`")  # fmt: skip
CALLED = ("link the source of the function, or call it by its name and not by a pointer (`switch` over an integer "
          "chooses); a function with a rule wants a rule for batches")  # fmt: skip
LOCAL = "use a local variable or an argument for what differs between samples"
NUMBERS = "let samples differ in floats and integers of up to 64 bits only"
SMALLER = "use a smaller local array, or one from malloc"
TOGETHER = "use one element type for each array, and arrays that are all batched, or all shared, behind one pointer"


class _NotWide(Unsupported):
    instruction: Instruction | None = None


def placed(error: Unsupported, module: Module) -> Unsupported:
    """The error with the source line of its instruction, or of the next in its block; both are in this module."""
    if isinstance(error, _NotWide) and error.instruction is not None and error.instruction.block is not None:
        block = error.instruction.block.instructions
        lines = (locate(module, instr) for instr in block[block.index(error.instruction) :])
        error.change(where=next(filter(None, lines), ""))
    return error


def refuse(because: str, instr: Instruction, change: str = "") -> Unsupported:
    """The error for what cannot be widened; change: what to write in its place, where something helps."""
    error = _NotWide("this cannot run with samples as vector lanes", which=instruction_to_text(instr), because=because,
                     fix=f"{change}; {OTHERWISE}" if change else OTHERWISE)  # fmt: skip
    error.instruction = instr
    return error
