"""What a new process pays: CPU seconds (user and system) from its start to the first gradient of an LSTM in C.

    python -m benchmarks.startup            # medians of 9 processes each
    python -m benchmarks.startup 25

Every row is a process of its own: a bare interpreter, `import numpy`, `import irgrad`, the gradient with an empty disk
cache, and with the cache that this filled. CPU seconds count what the compiler does in processes of its own as well.
Python's own cache of compiled modules is in use, as it is wherever irgrad is installed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import CASES

GRADIENT = """
import numpy as np
import irgrad
kernel = irgrad.load({path!r}).kernel("lstm", {signature!r})
gradient = irgrad.engine.grad(kernel, wrt=("weights", "outer"))
l, c, b = 2, 8, 3
shapes = (l, 2, 4 * b), (3, b), (l, 2, b), (c, b)
found = gradient(*[np.full(shape, 0.1) for shape in shapes])
assert all(np.isfinite(row).all() and row.any() for row in found)
"""


def program() -> str:
    """A script that computes one gradient of the LSTM, from its C file."""
    case = next(case for case in CASES if case.name == "lstm-2")
    return GRADIENT.format(path=str(Path(__file__).parent / "kernels" / case.source), signature=case.signature)


def cpu_seconds(code: str, environment: dict[str, str]) -> float:
    """User and system time of a Python process that runs `code`, and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(repeats: int) -> dict[str, list[float]]:
    """CPU seconds of each kind of process."""
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="irgrad-startup-") as scratch:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(scratch, "modules"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment.pop("IRGRAD_CACHE", None)
        kinds = {"python": "pass", "import numpy": "import numpy", "import irgrad": "import irgrad"}
        for name, code in kinds.items():
            cpu_seconds(code, environment)
            rows[name] = [cpu_seconds(code, environment) for _ in range(repeats)]
        environment["IRGRAD_CACHE_DIR"] = str(Path(scratch, "first"))
        cpu_seconds(program(), environment)  # Python compiles irgrad's modules
        for name, folder in (("gradient, cold", "cold{}"), ("gradient, cached", "cold0")):
            rows[name] = []
            for turn in range(repeats):
                environment["IRGRAD_CACHE_DIR"] = str(Path(scratch, folder.format(turn)))
                rows[name].append(cpu_seconds(program(), environment))
    return rows


def main(words: list[str]) -> None:
    """Print the table."""
    for name, seconds in table(int(words[0]) if words else 9).items():
        print(f"{name:20}{statistics.median(seconds):8.3f} s   least {min(seconds):.3f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
