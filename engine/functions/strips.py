"""Many directions through one kernel: strips of W tangents or cotangents, one native call each.

Inside, the lanes of an element lie side by side (`differentiate/layout/lanes.py`). Jacobians want lanes first or
last: last is a copy of whole strips, first a transposition, done in blocks that stay in the cache.

How wide a strip should be was measured (`benchmarks/batch.py`, 512-bit vectors): scalar recurrences and code bound by
libm gain up to 16 lanes, since more of them share the primal; once the shadows leave the second-level cache, every lane
more costs as much as it saves. So: 16 lanes while the shadows of arguments and outputs fit into a megabyte, 8 while
those of 8 do, else 4; never more lanes than there are directions, rounded up to a power of two.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from irgrad.engine.differentiate.layout.lanes import MOST
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run, Value
from irgrad.rules.errors import OneAtATime, SignatureError
from irgrad.rules.layers import token

__all__ = ["OneLane", "Spares", "Strips", "Width", "choose_width", "lanes_first", "lanes_last", "one_lane", "takes_one"]

Array = np.ndarray[Any, Any]
Width = int | str
Key = tuple[int, ...]  # C parameter, then the positions in the word at which it was derived

SHADOW_BYTES = 1 << 20
WIDTHS = (16, 8)  # while their shadows are no larger
LEAST = 4
SPARE_BYTES = 1 << 18  # larger calls take longer than their preparation
SPARE_SIZES = 8  # sets of sizes
SPARES = 4  # for each: as many as threads that call at once
_ONE: WeakSet[Program] = WeakSet()  # those that were refused, so that this is found once
BLOCK = 256  # rows of a transposition at a time: 256 x 16 lanes of 8 bytes are 32 KiB


def choose_width(width: Width, directions: int, lane_bytes: int) -> int:
    """The width of the strips for so many directions; `lane_bytes`: shadow memory of one lane.

    `width` is "auto" or a number from 1 to 64. Raises SignatureError for anything else.
    """
    if width != "auto":
        if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= MOST:
            raise SignatureError(f"width={width!r} is no width", because=f'"auto" or an integer from 1 to {MOST}',
                                 fix='width="auto"')  # fmt: skip
        return width
    most = next((w for w in WIDTHS if w * lane_bytes <= SHADOW_BYTES), LEAST)
    least = 1
    while least < directions:
        least *= 2
    return min(most, least)


class OneLane(RuntimeWarning):
    """Many directions share no run of the function, because a rule that is in force takes one at a time."""


def one_lane(name: str) -> str:
    """What a OneLane warning says of the function `name`."""
    return f"the directions of `{name}` run one after the other: a rule that writes calls takes one at a time"


def takes_one(program: Program) -> bool:
    """Whether a rule of the user refuses the lanes of this derivative."""
    if program not in _ONE:
        try:
            _ = program.stage
        except OneAtATime:
            _ONE.add(program)
    return program in _ONE


class Strips:
    """One derivative program of some width on buffers of its own.

    make:    gives the program of a width
    seeds:   slots whose lanes are set before each run, as keys for `Program.find`
    results: slots read after each run
    start:   what other slots hold before each run

    Where a rule takes one direction at a time, and cannot be run for one lane after the other, the width is 1, and a
    OneLane warning says so.
    """

    def __init__(
        self, make: Callable[[int], Program], bound: Bound, seeds: Sequence[Key], results: Sequence[Key], width: int,
        start: Mapping[Key, Value] | None = None,
    ) -> None:  # fmt: skip
        self.program = make(width)
        self.narrowed = width > 1 and takes_one(self.program)
        if self.narrowed:
            width, self.program = 1, make(1)
            warnings.warn(one_lane(self.program.source.name), OneLane, stacklevel=3)
        self.width = width
        held = {self._slot(key): value for key, value in (start or {}).items()}
        self._run = Run(self.program, bound, held)
        self._seeds = [self._slot(key) for key in seeds]
        self._results = [self._slot(key) for key in results]
        for number in self._seeds:
            self._run.start[number] = np.zeros_like(self._run.buffers[number])
        self.seed_shapes = tuple(map(self._shape, self._seeds))
        self.result_shapes = tuple(map(self._shape, self._results))
        self.directions = sum(map(math.prod, self.seed_shapes))
        self._is_unit = False

    def _slot(self, key: Key) -> int:
        number = self.program.find(*key)
        if number is None:
            raise AssertionError("a slot of a derivative is missing")
        return number

    def _shape(self, number: int) -> tuple[int, ...]:
        shape = self._run.buffers[number].shape
        return tuple(shape if self.width == 1 else shape[:-1])

    @property
    def own_bytes(self) -> int:
        """Memory that this holds besides the arguments."""
        return self._run.own_bytes + sum(value.nbytes for value in self._run.start.values()
                                         if isinstance(value, np.ndarray))  # fmt: skip

    def rebind(self, bound: Bound) -> None:
        """Other arguments, of the same sizes."""
        self._run.rebind(bound)

    def release(self) -> None:
        """Let go of the arguments; `rebind` comes before the next run."""
        self._run.release()

    def seed(self, which: int) -> Array:
        """What the seed holds before a run, as `[element, lane]`; to be written to."""
        start = self._run.start[self._seeds[which]]
        assert isinstance(start, np.ndarray)
        return start.reshape(-1, self.width)

    def dtype(self, which: int) -> Any:
        """Element type of a result."""
        return self._run.buffers[self._results[which]].dtype

    def run(self) -> list[Array]:
        """Run on the seeds; the results as `[element, lane]` (overwritten by the next run)."""
        full = self._run()
        return [full[number].reshape(-1, self.width) for number in self._results]

    def units(self) -> Iterator[tuple[int, int, list[Array]]]:
        """All unit directions of the seeds, one after the other: (first direction, how many, results). Where one strip
        holds them all it keeps them: nothing else may write to its seeds."""
        if self._is_unit:
            yield 0, self.directions, self.run()
            return
        seeds = [self.seed(i) for i in range(len(self._seeds))]
        places = [(seed, element) for seed in seeds for element in range(len(seed))]
        self._is_unit = 0 < len(places) <= self.width
        for first in range(0, len(places), self.width):
            strip = places[first : first + self.width]
            for lane, (seed, element) in enumerate(strip):
                seed[element, lane] = 1
            yield first, len(strip), self.run()
            for lane, (seed, element) in enumerate(strip):
                seed[element, lane] = self._is_unit


class Spares:
    """Strips of calls that are over, for calls with arguments of the same sizes while the same rules are in force:
    buffers, unit directions and the choice of a program are there already. Small ones only; safe for threads."""

    def __init__(self, make: Callable[[Bound], Strips]) -> None:
        self._make = make
        self._free: dict[Any, list[Strips]] = {}

    def take(self, bound: Bound) -> tuple[Any, Strips]:
        """Strips for these arguments, and the key to give them back with."""
        key = (*bound.sizes.values(), token())
        free = self._free.get(key)
        if free:
            try:
                strips = free.pop()
            except IndexError:  # another thread was faster
                return key, self._make(bound)
            strips.rebind(bound)
            return key, strips
        return key, self._make(bound)

    def give(self, key: Any, strips: Strips) -> None:
        """Strips that nobody needs any more, nor the buffers of their results."""
        free = self._free.get(key)
        if free is None:
            if strips.narrowed or strips.own_bytes > SPARE_BYTES:
                return
            if len(self._free) >= SPARE_SIZES:
                self._free.clear()
            free = self._free.setdefault(key, [])
        if len(free) < SPARES:
            strips.release()
            free.append(strips)


def lanes_first(target: Array, lanes: Array) -> None:
    """`target[lane, element] = lanes[element, lane]`, in blocks of rows: both sides stay in the cache."""
    for first in range(0, len(lanes), BLOCK):
        target[:, first : first + BLOCK] = lanes[first : first + BLOCK, : len(target)].T


def lanes_last(target: Array, rows: Array) -> None:
    """`target[element, lane] = rows[lane, element]`, in blocks likewise."""
    for first in range(0, len(target), BLOCK):
        target[first : first + BLOCK] = rows[:, first : first + BLOCK].T
