"""Work of Python code as a count, not a time: the lines that run. It is the same on every machine and at every load.

Lines do not show what one call costs inside the interpreter (a search in a list, a copy of a string, a long integer).
`peak_bytes` shows those that build something; `benchmarks/scaling.py` measures the rest.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["growth", "lines_run", "peak_bytes"]


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python run in `call` (a loop on one line counts once for each turn).

    It runs some ten times slower.     Garbage is not collected meanwhile: finalisers of earlier tests would be counted.
    """
    count = 0

    def trace(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return count


def growth(make: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """How much faster than the size the work grows: lines(large) / lines(small), over large / small. Linear work: 1.

    `make(size)` prepares an input and returns the call to count. It is called twice for the small size, so that imports
    and what is remembered between calls are not counted.
    """
    make(small)()
    return lines_run(make(large)) / lines_run(make(small)) / (large / small)


def peak_bytes(call: Callable[[], object]) -> int:
    """The most memory that Python objects made by `call` hold at once."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
