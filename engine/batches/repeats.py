"""Calls of a batched function like an earlier one: same program, shapes and integers, arrays that need no conversion.

What follows from these is kept from the first of them: the checks, the axes, the unit, the words of `meta`. Such a call
makes arrays for its results and tells the driver where everything is. Where the arrays of large calls begin in their
cache lines decides about the chunks, so they have that in common as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgrad.engine.batches.axes import Operands
from irgrad.engine.batches.plan import LINE, Job, Plan
from irgrad.engine.batches.results import empty
from irgrad.engine.batches.unit import Unit
from irgrad.engine.kernel.binding import address_of
from irgrad.engine.kernel.kernel import Kernel

__all__ = ["KEPT", "Repeat", "kind_of", "kinds_of", "repeat_of"]

Array = np.ndarray[Any, Any]
Made = tuple[tuple[int, ...], Any]
_LARGE = 4096
KEPT = 64
"""Kinds of calls that a batched function remembers."""


def kinds_of(kernel: Kernel) -> tuple[tuple[Any, bool], ...]:
    """For each argument the dtype of its arrays, and whether it may be a number."""
    return tuple((p.dtype.numpy, not p.is_array) for p in kernel.signature.arguments)


def kind_of(values: Sequence[Any], kinds: Sequence[tuple[Any, bool]]) -> tuple[Any, ...] | None:
    """What a call has in common with those like it; None where an argument wants conversion or a check."""
    if len(values) != len(kinds):
        return None
    parts: list[Any] = []
    for value, (dtype, number) in zip(values, kinds, strict=True):
        if type(value) is np.ndarray:
            if value.dtype is not dtype or not value.flags.carray:
                return None
            parts.append(value.shape)
            if value.size >= _LARGE:
                parts.append(address_of(value) % LINE)
        elif number and type(value) is float and dtype.kind == "f":
            parts.append(float)
        elif number and type(value) is int and dtype.kind in "iu":
            parts.append(value)
        else:
            return None
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call that was planned, without its addresses. It holds no array of the caller's.

    unit, meta, chunks, scratch: as in `Plan`
    sources: where each slot starts from: the position of an argument, memory that is the same for all calls, or None
    numbers: arguments that are Python's floats: position -> dtype;  first: the first argument with samples
    results: shape and dtype of the arrays of results, by slot; sums: of the accumulators
    status:  the slot of the samples' statuses
    """

    unit: Unit
    meta: Array
    chunks: int
    scratch: int
    sources: list[int | Array | None]
    numbers: dict[int, Any]
    first: int
    results: dict[int, Made]
    sums: dict[int, Made]
    status: int | None

    def run(self, values: Sequence[Any], threads: int | None) -> tuple[Plan, dict[int, Array]]:
        """Run for these arguments. Returns the plan, and the arrays of results by slot."""
        given = list(values)
        for position, dtype in self.numbers.items():
            given[position] = np.array(values[position], dtype)
        targets = {n: empty(*made, given[self.first]) for n, made in self.results.items()}
        sums = {n: np.zeros(*made) for n, made in self.sums.items()}
        if self.status is not None:
            targets[self.status][...] = 0
        bases: list[int] = []
        for number, source in enumerate(self.sources):
            array = given[source] if isinstance(source, int) else source
            target = sums.get(number, targets.get(number))
            bases += (0 if array is None else address_of(array), 0 if target is None else address_of(target))
        plan = Plan(self.unit, self.meta, np.array(bases, np.int64), self.chunks, self.scratch, sums, [given, targets])
        with self.unit.turn:
            plan.run(1 if self.unit.strategy.serial else threads)
        return plan, targets


def repeat_of(
    kernel: Kernel, values: Sequence[Any], given: Operands, plan: Plan, jobs: Sequence[Job], targets: dict[int, Array],
    status: int | None,
) -> Repeat | None:  # fmt: skip
    """The call that was just planned, as one to repeat. None where it reads a copy of an argument."""
    index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
    positions: dict[int, int] = {}
    numbers: dict[int, Any] = {}
    for position, (p, value) in enumerate(zip(kernel.signature.arguments, values, strict=True)):
        data = given.data.get(index[p.name])
        if type(value) is int:
            continue
        if data is None or (data.array is not value and type(value) is not float):
            return None
        positions[index[p.name]] = position
        if type(value) is float:
            numbers[position] = data.array.dtype
    sources: list[int | Array | None] = []
    for slot, job in zip(plan.unit.program.slots, jobs, strict=True):
        own = job.source is not None and job.source is given.data.get(slot.index) and slot.index in positions
        sources.append(positions[slot.index] if own else None if job.source is None else job.source.array)
    return Repeat(
        plan.unit, plan.meta, plan.chunks, plan.scratch, sources, numbers,
        positions[next(iter(given.axes))], {n: (array.shape, array.dtype) for n, array in targets.items()},
        {n: (array.shape, array.dtype) for n, array in plan.sums.items()}, status,
    )  # fmt: skip
