"""Large arrays of zeros, whose memory comes back."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from irgrad.engine.kernel import pages
from irgrad.engine.kernel.binding import address_of
from irgrad.engine.kernel.pages import LEAST, MOST_KEPT, copied, free_memory, zeros

F64 = np.dtype(np.float64)
SHAPE = (LEAST // 64, 8)


def test_memory_comes_back_cleared() -> None:
    array = zeros(SHAPE, F64)
    where = address_of(array)
    assert array.shape == SHAPE
    assert array.dtype == F64
    assert array.flags.carray
    array[...] = 3
    other = zeros(SHAPE, F64)
    assert address_of(other) != where
    del array
    again = zeros(SHAPE, F64)
    assert address_of(again) == where
    assert not again.any()


def test_views_keep_the_memory() -> None:
    array = zeros(SHAPE, F64)
    where = address_of(array)
    row, flat = array[3], array.reshape(-1)[5:]
    row[...] = 7
    view = memoryview(array)  # type: ignore[arg-type, unused-ignore]  # pyright: ignore[reportArgumentType]
    del array
    gc.collect()
    assert address_of(zeros(SHAPE, F64)) != where
    del row
    assert address_of(zeros(SHAPE, F64)) != where
    assert flat[8 * 3 - 5] == 7
    del flat
    assert address_of(zeros(SHAPE, F64)) != where
    view.release()
    del view
    assert address_of(zeros(SHAPE, F64)) == where


def test_a_bounded_amount_is_kept() -> None:
    size = MOST_KEPT // 3
    held = [zeros((size,), np.dtype(np.uint8)) for _ in range(5)]
    assert all(not array[:: 1 << 12].any() for array in held)
    del held
    assert sum(length * len(rows) for length, rows in pages._free.items()) <= MOST_KEPT
    assert type(zeros((4,), F64).base) is type(None), "small arrays are NumPy's own"
    assert zeros((0, 3), F64).shape == (0, 3)


def test_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/meminfo": "MemTotal: 16 kB\nMemAvailable: 9 kB\n", "/sys/fs/cgroup/memory.max": "max\n",
             "/sys/fs/cgroup/memory.current": "4096\n"}  # fmt: skip

    def read(path: Path, encoding: str = "") -> str:
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    assert free_memory() == 9 * 1024
    files["/sys/fs/cgroup/memory.max"] = "8192"
    assert free_memory() == 4096
    files.clear()
    assert free_memory() is None


def test_copies_take_the_memory_of_arrays_that_died() -> None:
    array = zeros(SHAPE, F64)
    where = address_of(array)
    del array
    given = np.arange(LEAST // 8, dtype=np.float64).reshape(SHAPE)
    copy = copied(given)
    assert address_of(copy) == where
    assert np.array_equal(copy, given)
    assert copy.flags.carray
    small = copied(given[0])
    assert np.array_equal(small, given[0])
    assert small.base is None
