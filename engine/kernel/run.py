"""Runs of derivative programs: which buffer goes to which slot, what is reset between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irgrad.engine.kernel.binding import Bound, address_of, frame_of
from irgrad.engine.kernel.programs import Program
from irgrad.rules.errors import DTypeError, ShapeError

__all__ = ["Run", "basis", "like"]

Array = np.ndarray[Any, Any]
Value = Array | float
_NOTHING: Array = np.zeros(0)


class Run:
    """One program with its buffers. `start` says what slots hold before each run; all others start from zero.

    Slots of role `in` keep their buffer; every other one is filled anew before each run, since the native code may
    overwrite it (shadows of outputs are consumed, gradients are accumulated).
    """

    __slots__ = ("_arguments", "_frame", "_fresh", "_written", "buffers", "program", "start")

    def __init__(self, program: Program, bound: Bound, start: Mapping[int, Value]) -> None:
        self.program = program
        given: list[Array | None] = []
        self.start: dict[int, Value] = dict(start)
        self._arguments: list[tuple[int, int, bool]] = []  # slot, C parameter, whether it is overwritten
        for number, slot in enumerate(program.slots):
            primal = bound.buffers[slot.index] if not slot.steps and slot.index < len(bound.buffers) else None
            copied = primal is not None and slot.role == "inout"  # other runs start from the same arguments
            given.append(None if copied else primal)
            if primal is not None:
                self._arguments.append((number, slot.index, copied))
                if copied:
                    self.start[number] = primal
        self.buffers = program.fill(given, bound.sizes)
        for number, value in self.start.items():
            self.buffers[number][...] = value
        self._written = [number for number, slot in enumerate(program.slots) if slot.role != "in"]
        self._frame = frame_of(self.buffers)
        self._fresh = True  # buffers are zeros

    @property
    def own_bytes(self) -> int:
        """Memory of the buffers that are not the arguments themselves."""
        theirs = {number for number, _, copied in self._arguments if not copied}
        return sum(buffer.nbytes for number, buffer in enumerate(self.buffers) if number not in theirs)

    def rebind(self, bound: Bound) -> None:
        """Other arguments, of the same sizes. They belong to this run from now on."""
        for number, index, copied in self._arguments:
            value = bound.buffers[index]
            assert value is not None
            if copied:
                self.start[number] = value
            else:
                self.buffers[number] = value
                self._frame[number] = address_of(value)

    def release(self) -> None:
        """Let go of the arguments; `rebind` comes before the next run."""
        for number, _, copied in self._arguments:
            if not copied:
                self.buffers[number] = _NOTHING

    def __call__(self, start: Mapping[int, Value] | None = None) -> list[Array]:
        """Reset, run, and return the buffers (they are overwritten by the next run)."""
        if start is not None:
            self.start.update(start)
        self._reset()
        self.program.within_limit(self._frame, self.buffers, self._reset)
        return self.buffers

    def _reset(self) -> None:
        values, buffers = self.start, self.buffers
        for number in () if self._fresh else self._written:
            if number not in values:
                buffers[number].fill(0)
        self._fresh = False
        for number, value in values.items():
            buffers[number][...] = value


def basis(shape: Sequence[int], dtype: Any) -> Any:
    """The unit arrays of a shape, in C order; the same array is reused."""
    unit = np.zeros(shape, dtype)
    flat = unit.reshape(-1)
    for number in range(flat.size):
        flat[number] = 1
        yield number, unit
        flat[number] = 0


def like(value: Any, template: Array, name: str) -> Array:
    """A tangent or cotangent checked against the primal's shape and dtype. Python numbers fit scalars."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of several lengths, or the tangents of several arguments
        raise ShapeError(f"the {name} is no array", because=str(error).split("\n")[0],
                         fix=f"pass one array of shape {template.shape}; for several arguments name them in `wrt`"
                         ) from None  # fmt: skip
    if array.dtype != template.dtype:
        if isinstance(value, int | float | list | tuple) and array.dtype.kind in "iuf":
            array = array.astype(template.dtype)
        else:
            raise DTypeError(f"the {name} has dtype {array.dtype}, wanted {template.dtype}",
                             because="tangents and cotangents have the dtype of what they derive",
                             fix=f"pass it as np.{template.dtype.name}")
    if array.shape != template.shape:
        raise ShapeError(f"the {name} has shape {array.shape}, wanted {template.shape}",
                         because="tangents and cotangents have the shape of what they derive",
                         fix=f"pass an array of shape {template.shape}")
    return array
