"""Seconds from nothing to the first gradient, in each language: without caches, and with what an earlier process left.

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
import sys, time
start = time.perf_counter()
import numpy as np
import irgrad
from benchmarks import languages
begun = time.perf_counter()
try:
    kernel = languages.kernel(sys.argv[1], sys.argv[2])
except irgrad.LoadError as error:
    sys.exit("missing: " + error.what)
value, pullback = irgrad.engine.vjp(kernel, *languages.arguments(sys.argv[2]))
pullback(np.ones_like(value))
print(time.perf_counter() - begun)
"""


def first_gradient(language: str, function: str, folder: str) -> float | str:
    """Seconds that a process needs for its first gradient, imports aside, or what is missing."""
    environment = {**os.environ, "IRGRAD_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, "-c", _ONCE, language, function], capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip
    if done.returncode == 0:
        return float(done.stdout)
    last = done.stderr.strip().splitlines()[-1]
    if not last.startswith("missing: "):
        raise RuntimeError(done.stderr)
    return last


def main(names: list[str]) -> int:
    """Print the table."""
    print(f"{'language':9} {'function':9} {'cold':>7} {'cached':>7}   seconds to the first gradient")
    for language in names or languages.LANGUAGES:
        for function in languages.FUNCTIONS:
            with tempfile.TemporaryDirectory() as folder:
                rows = [first_gradient(language, function, folder) for _ in range(2)]
            if isinstance(rows[0], str):
                print(f"{language:9} {rows[0]}")
                break
            print(f"{language:9} {function:9} {rows[0]:7.2f} {rows[1]:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
