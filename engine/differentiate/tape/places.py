"""Where a saved value lies: in a stack variable, or in an array over the iterations of loops."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.schedule.loop_schedule import Levels

__all__ = ["Flat", "RowsOfSteps", "Slot"]


class RowsOfSteps(Protocol):
    """How the rows of an array are laid out, where the steps of a loop work on them (see `level_rows.py`)."""

    levels: Levels

    def rows(self, b: Builder, steps: Value, row: Value) -> Value: ...
    def place(self, b: Builder, number: Value, mask: Value) -> Value: ...


class Slot:
    """A stack variable of the primal sweep and its counterpart in the reverse sweep (the same one when they share a
    function)."""

    __slots__ = ("forward", "reverse", "type")

    def __init__(self, type_: Type, forward: Instruction, reverse: Instruction) -> None:
        self.type = type_
        self.forward = forward
        self.reverse = reverse


class Flat:
    """An array over the iterations of counted loops of a nest, made before its outermost loop (`top`)."""

    __slots__ = ("chain", "key", "levels", "pointer", "slack", "span", "top", "type", "width")

    def __init__(
        self, key: Hashable, type_: Type, top: Loop, chain: Sequence[Loop], span: int = 0, width: int = 1
    ) -> None:
        self.key = key
        self.type = type_
        self.top = top
        self.chain = chain  # the loops over which the value changes
        self.span = span  # cells beyond the iterations of the innermost loop
        self.width = width  # values of an iteration, side by side
        self.levels: RowsOfSteps | None = None  # how rows are laid out, where steps work on them
        self.slack = 0  # bytes in front of it
        self.pointer: Value | None = None  # in the primal sweep, once emitted

    def emitted_at(self, pointer: Value) -> None:
        """The primal sweep has allocated it."""
        self.pointer = pointer

    def lay_out(self, levels: RowsOfSteps, slack: int) -> None:
        """In rows, on which steps work, with so many bytes in front."""
        self.levels, self.slack = levels, slack
