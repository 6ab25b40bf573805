"""A large library of C, all of it reached from one kernel: how long its first gradient takes, and how much memory.

    python -m benchmarks.large_library                 # 1,000 to 10,000 lines
    python -m benchmarks.large_library 4000 --seed 7   # one size, another library

`benchmarks/library_modules.py` says what is in it: objects with methods in one list and one table, intrusive lists,
hash maps, callbacks with `void *`, sparse and dense matrices, growing arrays, trees in an arena, a parser, solvers.
Each size runs in a process of its own. "ratio" is the time of a gradient over that of a call of the function; "visits"
are the instructions that the analysis of pointers' offsets looked at: a measure of its work that other programs on the
machine do not change. The gradient is compared with differences.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.library_modules import library

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Instruction

SIZES = (1_000, 2_000, 4_000, 10_000)
SIGNATURE = "f64(f64[n] x, i64 n)"
POINT = (0.5137, 0.3171, 1.2093, 0.7411, 0.9377, 0.4229)
STEP = 2e-5
CLOSE = 1e-6


def measure(path: Path) -> None:
    """Print the figures of the library in a file, as one line of the table. Raises SystemExit for a wrong gradient."""
    import numpy as np

    import irgrad
    from irgrad import engine
    from irgrad.engine.analyses.memory.due_instructions import DueInstructions

    visits, sweep = [0], DueInstructions.__iter__

    def counted(self: DueInstructions) -> Iterator[Instruction]:
        for instr in sweep(self):
            visits[0] += 1
            yield instr

    x, began, clock = np.array(POINT), time.process_time(), time.perf_counter()
    with patch.object(DueInstructions, "__iter__", counted):
        kernel = irgrad.load(path).kernel("loss", SIGNATURE)
        derivative = engine.grad(kernel)
        gradient = derivative(x)
    seconds, wall = time.process_time() - began, time.perf_counter() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = irgrad.load(path).text
    instructions = sum(1 for line in text.splitlines() if line.startswith("  "))
    lines = len(path.read_text().splitlines())
    error = np.abs(gradient - _differences(kernel, x)).max()
    print(f"{lines:8,} {instructions:16,} {seconds:14.1f} s {wall:10.1f} s", end=" ")
    times = _seconds(derivative, x) / _seconds(kernel, x)
    print(f"{peak:8,.0f} MB {times:8.1f} {visits[0]:12,} {error:12.1e}")
    if not error < CLOSE:
        raise SystemExit(f"the gradient is {gradient}, differences are {_differences(kernel, x)}")


def _differences(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient by differences of the fourth order."""
    import numpy as np

    def along(e: Any) -> float:
        one, two = (f(x + k * STEP * e) - f(x - k * STEP * e) for k in (1, 2))
        return float(8 * one - two) / (12 * STEP)

    return np.array([along(e) for e in np.eye(len(POINT))])


def _seconds(f: Callable[[Any], Any], x: Any) -> float:
    """Of a call: the least of many."""
    f(x)
    return min(timeit.repeat(lambda: f(x), number=1, repeat=500))


def main(sizes: tuple[int, ...], seed: int) -> None:
    """Print the table."""
    print(f"{'lines':>8} {'IR instructions':>16} {'CPU':>16} {'wall':>12} {'peak':>11}", end=" ")
    print(f"{'ratio':>8} {'visits':>12} {'error':>12}")
    with tempfile.TemporaryDirectory(prefix="irgrad-library-") as scratch:
        for size in sizes:
            path = Path(scratch, f"library{size}.c")
            path.write_text(library(size, seed))
            environment = {**os.environ, "IRGRAD_CACHE_DIR": str(Path(scratch, f"cache{size}"))}
            command = [sys.executable, "-m", "benchmarks.large_library", "--measure", str(path)]
            subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="The first gradient of a large library.")
    arguments.add_argument("sizes", type=int, nargs="*", help="lines of C")
    arguments.add_argument("--seed", type=int, default=1, help="which library")
    arguments.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    if asked.measure:
        measure(asked.measure)
    else:
        main(tuple(asked.sizes) or SIZES, asked.seed)
