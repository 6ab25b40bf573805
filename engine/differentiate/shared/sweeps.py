"""What the parts of a derivative see of the sweeps that they are parts of."""

from __future__ import annotations

from typing import Protocol

from irgrad.engine.analyses.activity.activity import Activity
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Instruction, Value

__all__ = ["AdjointSweep", "PrimalCopy", "PrimalSweep", "Recalled"]


class PrimalCopy(Protocol):
    """A copy of a function with shadows beside its values (see `forward/sweep.py`)."""

    unit: Unit
    b: Builder
    activity: Activity
    tangents: bool
    values: dict[Value, Value]
    shadows: dict[Value, Value]

    def value(self, value: Value) -> Value: ...
    def shadow(self, value: Value) -> Value: ...
    def shadowed(self, value: Value) -> bool: ...
    def like(self, instr: Instruction, operands: list[Value]) -> Instruction: ...
    def zero_memory(self, pointer: Value, size: Value) -> None: ...


class PrimalSweep(PrimalCopy, Protocol):
    """The primal sweep of reverse mode (see `reverse/augment.py`)."""

    fn: Function
    target: Function
    blocks: dict[Block, Block]
    tapes: dict[Instruction, Value]

    @property
    def caller_tape(self) -> bool: ...
    def copy(self, instr: Instruction) -> Instruction: ...
    def allocate(self, size: Value) -> Value: ...


class TangentSweep(PrimalCopy, Protocol):
    """The sweep of forward mode (see `forward/forward.py`)."""

    def like_call(self, instr: Instruction, args: list[Value]) -> Instruction: ...


class Recalled(Protocol):
    """Values, shadows and tapes of callees, as the reverse sweep has them again (see `tape/rematerialise.py`)."""

    def value(self, value: Value) -> Value: ...
    def shadow(self, value: Value) -> Value: ...
    def tape(self, call: Instruction) -> Value: ...


class AdjointSweep(Protocol):
    """The reverse sweep, as far as the reverse of one instruction needs it (see `tape/state.py`)."""

    unit: Unit
    b: Builder

    @property
    def recall(self) -> Recalled: ...
    @property
    def sweep(self) -> PrimalSweep: ...
    @property
    def caller_tape(self) -> bool: ...
    def active(self, value: Value) -> bool: ...
    def give(self, value: Value, amount: Value | None) -> None: ...
    def take(self, value: Value) -> Value | None: ...
