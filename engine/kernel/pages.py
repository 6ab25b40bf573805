"""Arrays from some hundred kilobytes on, in memory that comes back when nobody holds them any more.

A large array of `numpy` is fresh pages of the system at every call: to map and to clear them takes longer than many a
kernel. Here the memory of an array that has died is cleared and given out again, to arrays of the same size.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["LEAST", "MOST_KEPT", "copied", "free_memory", "release_pages", "zeros"]

Array = np.ndarray[Any, Any]
LEAST = 1 << 17
"""Bytes of an array from which on its memory is kept; smaller ones come from `malloc`'s own pools, which gives larger
ones back to the system."""
MOST_KEPT = 1 << 27
"""Bytes that are kept at most while no array uses them."""
_free: dict[int, list[Array]] = {}
_given: dict[int, weakref.ref[Any]] = {}


def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Like `numpy.zeros`; views keep the memory as the array itself does. Thread-safe."""
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST or size > MOST_KEPT:
        return np.zeros(shape, dtype)
    try:
        memory = _free[size].pop()
        memory.fill(0)
    except (KeyError, IndexError):
        memory = np.zeros(size, np.uint8)
    return _array(memory, shape, dtype)


def copied(array: Array) -> Array:
    """Like `array.copy()`, C-contiguous, in such memory."""
    size = array.nbytes
    if size < LEAST or size > MOST_KEPT:
        return array.copy()
    try:
        memory = _free[size].pop()
    except (KeyError, IndexError):
        memory = np.empty(size, np.uint8)
    copy = _array(memory, array.shape, array.dtype)
    copy[...] = array
    return copy


def _array(memory: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array in this memory, which comes back when nothing uses it any more."""
    size: int = memory.nbytes
    owner = (ctypes.c_char * size).from_buffer(memory)  # arrays refer to it, and it to nothing that outlives them

    def back(_: weakref.ref[Any]) -> None:
        _given.pop(id(memory), None)
        _free[size] = [*_free.pop(size, []), memory]
        while sum(length * len(rows) for length, rows in list(_free.items())) > MOST_KEPT:
            _free.pop(next(iter(_free)))  # the size that was not used for the longest time

    _given[id(memory)] = weakref.ref(owner, back)
    return np.ndarray(shape, dtype, owner)  # type: ignore[arg-type, unused-ignore]


def release_pages() -> int:
    """Free the memory that no array uses; its bytes."""
    freed = 0
    while _free:
        try:
            size, rows = _free.popitem()
        except KeyError:  # another thread was faster
            break
        freed += size * len(rows)
    return freed


def free_memory() -> int | None:
    """Bytes that the system can give without swapping, within the bounds of its control group; None where it does not
    tell (other systems than Linux)."""
    found = _number("/proc/meminfo", "MemAvailable:")
    free = None if found is None else found * 1024
    for most, used in (("memory.max", "memory.current"),
                       ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):  # fmt: skip
        bound, now = _number(f"/sys/fs/cgroup/{most}"), _number(f"/sys/fs/cgroup/{used}")
        if free is not None and bound is not None and now is not None:
            free = min(free, max(bound - now, 0))
    return free


def _number(path: str, name: str = "") -> int | None:
    """A number in a file of the system: the first one, or that behind a name."""
    try:
        words = Path(path).read_text(encoding="ascii").split()
        return int(words[words.index(name) + 1 if name else 0])
    except (OSError, ValueError, IndexError):
        return None
