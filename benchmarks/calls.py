"""What a call from NumPy costs: microseconds of value, gradient and both, for small arguments and for large ones.

    python -m benchmarks.calls              # best of 7 rounds
    python -m benchmarks.calls 3

Of the large calls the last column is the native entry alone, on buffers that exist already: what remains are checks and
the memory of the results.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import irgrad
from irgrad.engine import grad, value_and_grad

SOURCE = "double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; return s; }"
SIZES = (3, 1000, 1_000_000)


def microseconds(call: Callable[[], Any], rounds: int, number: int) -> float:
    """The least time of a call."""
    call()
    return min(timeit.repeat(call, number=number, repeat=rounds)) / number * 1e6


def table(rounds: int) -> list[tuple[int, float, float, float, float]]:
    """For each size: value, gradient, both, the gradient's native entry."""
    kernel = irgrad.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)")
    gradient, both = grad(kernel), value_and_grad(kernel)
    rows = []
    for size in SIZES:
        x, number = np.linspace(0, 1, size), max(5, 20_000 // (1 + size // 100))
        np.testing.assert_allclose(gradient(x), 2 * x)
        calls: list[Callable[[], Any]] = [*(partial(call, x) for call in (kernel, gradient, both)), gradient.prepare(x)]
        value, slope, pair, native = (microseconds(call, rounds, number) for call in calls)
        rows.append((size, value, slope, pair, native))
    return rows


def main(argv: list[str]) -> None:
    """Print the table."""
    print(f"{'elements':>9} {'value':>9} {'grad':>9} {'both':>9} {'entry':>9}   us")
    for row in table(int(argv[0]) if argv else 7):
        print(f"{row[0]:9d} " + " ".join(f"{value:9.2f}" for value in row[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
