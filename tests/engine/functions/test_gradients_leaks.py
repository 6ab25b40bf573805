"""Nothing leaks: less than 1 MB over 10^3 kernels made and dropped, and over 10^5 gradient calls."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad import engine

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
double f(const double *x, long n) {
    double *t = malloc(n * sizeof(double)), s = 0.5;
    for (long i = 0; i < n; i++) { t[i] = s * x[i]; s = sin(t[i]) + s * s * 0.1; }
    free(t);
    return s;
}
"""
X = np.linspace(0, 1, 20_000)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _growth(work: Callable[[], object], times: int) -> int:
    """Bytes that so many runs leave behind, the least of three rounds after a first: what grows once is a pool that
    reaches its size, in a process of many tests perhaps late; a leak grows every time."""
    found = []
    for _ in range(4):
        gc.collect()
        before = _resident()
        for _ in range(times):
            work()
        gc.collect()
        found.append(_resident() - before)
    return min(found[1:])


@pytest.mark.long
def test_kernels_that_are_dropped_give_everything_back() -> None:
    """Machine code, tape (320 kB each) and Python objects; from the disk cache after the first time."""
    library = irgrad.load(SOURCE)

    def cycle() -> None:
        gradient = engine.grad(library.kernel("f", "f64(f64[n] x, i64 n)"), wrt="x")
        gradient(X)
        assert gradient.tape_bytes >= X.size * 8

    assert _growth(cycle, 600) < 1 << 19


@pytest.mark.long
def test_gradient_calls_give_everything_back() -> None:
    gradient = engine.grad(irgrad.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)"), wrt="x")
    parts = [X[:n] for n in (3, 100, 17, 60)]
    turns = itertools.count()
    assert _growth(lambda: gradient(parts[next(turns) % 4]), 100_000) < 1 << 20
