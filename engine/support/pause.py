"""A pause of the garbage collector while large structures are built that all stay alive.

Python's collector looks at every living object again whenever their number has grown by a quarter; while a module of
10^5 instructions is read and differentiated that doubles the time, and it finds nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_collections"]

_LOCK = threading.Lock()
_inside = 0
_was_enabled = False


@contextmanager
def no_collections() -> Iterator[None]:
    """No automatic garbage collection inside, in any thread; it nests, and the last one out restores what was."""
    global _inside, _was_enabled  # noqa: PLW0603 - the collector is global, so is its state
    with _LOCK:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                gc.enable()
