"""Memory of derivatives: what the tape of a call takes, and what stays allocated between calls."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable

from irgrad.engine.codegen.jit import release_tapes
from irgrad.engine.codegen.team import release_copies
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.pages import release_pages
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run
from irgrad.engine.runtime.arena import PEAK, RESET

__all__ = ["release", "tape_of_call"]

_LOCK = threading.Lock()


def release() -> int:
    """Free the memory that is kept for the next call: tapes, copies of arrays that threads add to, and large arrays
    that nobody holds any more.

    Tapes keep their largest size until the kernel goes, because fresh pages of the system are slow. Returns how many
    bytes were freed; memory that calls of other threads use stays theirs. The next call allocates again.

        >>> for _ in range(2):  # a tape that has grown is freed, and taken in one piece from the next call on
        ...     _ = irgrad.grad(power)(0.3, 100_000)
        >>> irgrad.release() > 0
        True
    """
    return release_tapes() + release_pages() + release_copies()


def tape_of_call(program: Program, bound: Bound, outputs: Iterable[int]) -> int:
    """The bytes of tape of one run of a pullback whose cotangents are ones."""
    unit = program.compiled
    if not unit.has(PEAK):
        return 0
    reset = unit.function(RESET, ctypes.c_int64)
    peak = unit.function(PEAK, ctypes.c_int64, ctypes.c_int64)
    seeds = (program.find(output, 0) for output in outputs)
    run = Run(program, bound, {seed: 1.0 for seed in seeds if seed is not None})
    with _LOCK:
        before = reset()
        run()
        if (first := reset()) == 0:
            peak(before)
            return 0
        run()  # now in one piece: chunks have ends that nothing was put into
        return int(peak(max(before, first)))
