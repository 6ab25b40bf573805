"""Runs of one derivative for `check_rule`: buffers between canary words, shadows that start from random values.

`Runs` measures the Jacobian entry by entry, several entries at once where the program has a width, and notes every
promise that a run breaks: a canary or an input that changed, a primal result that differs, the shadow of an overwritten
output that is not zero, a second run that gives other bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.programs import Program

__all__ = ["ENTRIES", "Runs", "entries"]

Array = np.ndarray[Any, Any]
Jacobian = dict[tuple[int, int], Array]
"""(output, input) -> derivatives, output entries by input entries; NaN where nothing was measured."""
GUARD = 64  # bytes of canary words before and behind every buffer
ENTRIES = 48
"""The most entries of one argument or output along which derivatives are taken."""


def entries(size: int) -> Array:
    """The entries that are measured: all, or evenly spread ones."""
    return np.arange(size) if size <= ENTRIES else np.linspace(0, size - 1, ENTRIES).astype(int)


class Runs:
    """One program with its buffers.

    mode: "forward" or "reverse"; inputs, outputs: slots of the primal that are active; truth: slot -> primal result
    """

    def __init__(
        self, program: Program, mode: str, bound: Bound, inputs: Sequence[int], outputs: Sequence[int], width: int,
        truth: dict[int, Array], rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.program, self.mode, self.bound, self.width, self.rng = program, mode, bound, width, rng
        self.inputs, self.outputs, self.truth = tuple(inputs), tuple(outputs), truth
        self.broken: list[str] = []
        shapes = program.shapes(bound.sizes)
        made = [_guarded(shape, slot.dtype.numpy, _canary(number))
                for number, (shape, slot) in enumerate(zip(shapes, program.slots, strict=True))]  # fmt: skip
        self._raw, self.buffers = [m[0] for m in made], [m[1] for m in made]
        self._both = [i for i in self.inputs if i in self.outputs]
        self._prefill: dict[int, Array] = {}

    def slot(self, index: int) -> int:
        """The slot of the tangent or shadow of a primal slot."""
        number = self.program.find(index, 0)
        if number is None:
            raise AssertionError(f"the derivative has no slot for {index}")
        return number

    def _lanes(self, index: int) -> Array:
        """The tangent or shadow: entries by lanes."""
        return self.buffers[self.slot(index)].reshape(-1, self.width)

    def _fill(self) -> None:
        self._prefill = {}
        for number, slot in enumerate(self.program.slots):
            given = self.bound.buffers[slot.index] if slot.index < len(self.bound.buffers) else None
            self.buffers[number][...] = given if not slot.steps and given is not None else 0
        if self.mode == "reverse":
            for i in self.inputs:
                if i not in self.outputs:
                    lanes = self._lanes(i)
                    lanes[...] = self.rng.standard_normal(lanes.shape)
                    self._prefill[i] = lanes.copy()

    def run(self, seeds: dict[int, Array]) -> dict[int, Array]:
        """One run from seeds (slot -> entries by lanes): tangents of the outputs, or what the gradients gained."""
        self._fill()
        for index, seed in seeds.items():
            self._lanes(index)[...] = seed
        self.program.invoke(self.buffers)
        self._look()
        if self.mode == "forward":
            return {o: self._lanes(o).copy() for o in self.outputs}
        return {i: self._lanes(i) - self._prefill.get(i, 0) for i in self.inputs}

    def _look(self) -> None:
        """Note what the run broke."""
        for number, slot in enumerate(self.program.slots):
            raw, value = self._raw[number], self.buffers[number]
            words = _canary(number)
            if not ((raw[:GUARD] == words).all() and (raw[GUARD + value.nbytes :] == words).all()):
                self._note(f"something wrote outside of `{slot.name}`")
            if slot.steps or slot.role == "scratch":
                continue
            given = self.bound.buffers[slot.index] if slot.index < len(self.bound.buffers) else None
            if slot.role == "in" and given is not None and value.tobytes() != given.tobytes():
                self._note(f"`{slot.name}` is an input and was changed")
            truth = self.truth.get(slot.index)
            if truth is not None and not _close(value, truth):
                self._note(f"the primal result `{slot.name}` differs from that of the function")
        if self.mode == "reverse":
            for o in self.outputs:
                if o not in self._both and not self._written_inout(o) and self._lanes(o).any():
                    self._note(f"the shadow of the overwritten `{self.program.slots[self.slot(o)].name}` is not zero")

    def _written_inout(self, index: int) -> bool:
        return next(s.role for s in self.program.slots if s.index == index and not s.steps) == "inout"

    def _note(self, text: str) -> None:
        if text not in self.broken:
            self.broken.append(text)

    def twice(self, seeds: dict[int, Array]) -> dict[int, Array]:
        """A run from seeds, repeated: both give the same bits."""
        state = self.rng.bit_generator.state
        first = self.run(seeds)
        kept = [b.tobytes() for b in self.buffers]
        self.rng.bit_generator.state = state
        self.run(seeds)
        if any(a != b.tobytes() for a, b in zip(kept, self.buffers, strict=True)):
            self._note("a second run gives other bits")
        return first

    def jacobian(self) -> Jacobian:
        """The derivatives, by unit seeds in strips of the width."""
        ahead = self.mode == "forward"
        sources, targets = (self.inputs, self.outputs) if ahead else (self.outputs, self.inputs)
        sizes = {i: self._lanes(i).shape[0] for i in (*sources, *targets)}
        found = {}
        for s in sources:
            for t in targets:
                shape = (sizes[t], sizes[s]) if ahead else (sizes[s], sizes[t])
                found[(t, s) if ahead else (s, t)] = np.full(shape, np.nan)
        for strip in _strips([(s, int(e)) for s in sources for e in entries(sizes[s])], self.width):
            seeds = {s: np.zeros((sizes[s], self.width)) for s in sources}
            for lane, (s, e) in enumerate(strip):
                seeds[s][e, lane] = 1
            got = self.run(seeds)
            for lane, (s, e) in enumerate(strip):
                for t in targets:
                    if ahead:
                        found[t, s][:, e] = got[t][:, lane]
                    else:
                        found[s, t][e, :] = got[t][:, lane]
        return found


def _strips(all_entries: list[tuple[int, int]], width: int) -> Iterator[list[tuple[int, int]]]:
    for first in range(0, len(all_entries), width):
        yield all_entries[first : first + width]


def _canary(number: int) -> int:
    """The byte around a buffer: another one for its neighbour, so that a copy of too many elements shows."""
    return (0xA5 + 37 * number) & 0xFF


def _guarded(shape: tuple[int, ...], dtype: Any, canary: int = 0xA5) -> tuple[Array, Array]:
    """A buffer at a cache line between canary words: the whole, and the buffer."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = np.empty(size + 2 * GUARD + 64, np.uint8)
    first = -room.__array_interface__["data"][0] % 64
    raw = room[first : first + size + 2 * GUARD]
    raw[...] = canary
    value: Array = raw[GUARD : GUARD + size].view(dtype).reshape(shape)
    value[...] = 0
    return raw, value


def _close(got: Array, truth: Array) -> bool:
    """Equal up to the rounding of other instructions for the same operations."""
    if got.dtype.kind != "f":
        return bool((got == truth).all())
    allowed = 64 * np.finfo(got.dtype).eps if got.dtype.itemsize >= 2 else 0.1
    return bool(np.allclose(got, truth, rtol=allowed, atol=allowed * float(np.max(np.abs(truth), initial=0)),
                            equal_nan=True))  # fmt: skip
