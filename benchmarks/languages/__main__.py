"""Seconds from nothing to the first gradient, in each language: without caches, and with what an earlier process left.
Those of the clock, and those of processors (of this process and of the compilers that it starts), which other work on
the machine disturbs less.

python -m benchmarks.languages [LANGUAGE ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks import languages

__all__ = ["first_gradient", "main"]

_ONCE = """
import os, sys, time
import numpy as np
import irgrad
from benchmarks import languages
begun, before = time.perf_counter(), sum(os.times()[:4])
try:
    kernel = languages.kernel(sys.argv[1], sys.argv[2])
except irgrad.LoadError as error:
    sys.exit("missing: " + error.what)
value, pullback = irgrad.engine.vjp(kernel, *languages.arguments(sys.argv[2]))
pullback(np.ones_like(value))
print(time.perf_counter() - begun, sum(os.times()[:4]) - before)
"""


def first_gradient(language: str, function: str, folder: str) -> tuple[float, float] | str:
    """Seconds that a process needs for its first gradient, imports aside, by the clock and of processors; or what is
    missing."""
    environment = {**os.environ, "IRGRAD_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, "-c", _ONCE, language, function], capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip
    if done.returncode == 0:
        clock, processors = map(float, done.stdout.split())
        return clock, processors
    last = done.stderr.strip().splitlines()[-1]
    if not last.startswith("missing: "):
        raise RuntimeError(done.stderr)
    return last


def main(names: list[str]) -> int:
    """Print the table."""
    print("seconds to the first gradient, by the clock and (of processors)")
    print(f"{'language':9} {'function':9} {'cold':>16} {'cached':>16}")
    for language in names or languages.LANGUAGES:
        for function in languages.FUNCTIONS:
            with tempfile.TemporaryDirectory() as folder:
                rows = [first_gradient(language, function, folder) for _ in range(2)]
            if isinstance(rows[0], str):
                print(f"{language:9} {rows[0]}")
                break
            shown = (f"{row[0]:7.2f} ({row[1]:6.2f})" for row in rows if not isinstance(row, str))
            print(f"{language:9} {function:9}", *shown)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
