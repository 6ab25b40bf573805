"""One table of the applications: `python -m benchmarks.openmp [--quick] [NAME ...]`.

Times in ms of native entries, minima; the tape in MB. An application is right when its gradient, along a random
direction, agrees with forward mode to 1e-10 and with central differences to 1e-5 (at the sizes of `--quick`: over many
steps of hydrodynamics the least stable time step changes its element, which differences see and derivatives do not).
With `--threads N` the last columns are the gradient's times where a team of one and of N threads shares its loops; it
is right only when both have the same bits.
The exit code is 0 when all are right.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

import irgrad as ig  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.openmp.applications import APPLICATIONS, Application  # noqa: E402
from irgrad.engine.kernel.trees import TreeKernel  # noqa: E402


def flat(application: Application, *, quick: bool) -> tuple[Any, dict[str, Any]]:
    """The kernel and its data, fields of structs as arguments of their own."""
    kernel, data = application.kernel(), application.data(quick)
    return (kernel.kernel, kernel.named((), data)) if isinstance(kernel, TreeKernel) else (kernel, data)


def errors(application: Application) -> tuple[float, float]:
    """Reverse mode against forward mode, and against differences, along one direction, at the small size."""
    kernel, data = flat(application, quick=True)
    rng = np.random.default_rng(11)
    along = {name: rng.normal(size=np.shape(data[name])) for name in application.wrt}
    gradients = ig.grad(kernel, wrt=application.wrt, of="return")(**data)
    reverse = sum(float(np.vdot(row, along[name])) for name, row in zip(application.wrt, gradients, strict=True))

    def value(step: float) -> float:
        out = kernel(**{**data, **{name: data[name] + step * row for name, row in along.items()}})
        return float(out[0] if isinstance(out, tuple) else out)

    slopes = [(value(h) - value(-h)) / (2 * h) for h in (2e-5, 1e-5)]
    columns = ig.jacfwd(kernel, wrt=application.wrt[0])(**data)
    column = columns[0] if isinstance(columns, tuple) else columns
    forward = float(np.abs(column - gradients[0]).max() / np.abs(column).max())
    return forward, min(abs(reverse - row) for row in ((4 * slopes[1] - slopes[0]) / 3, *slopes)) / abs(reverse)


def shared(application: Application, threads: int, *, quick: bool) -> tuple[list[float], bool]:
    """Milliseconds of the gradient on a team of one thread and of several, and whether they are the same bits."""
    times, found = [], []
    for count in (1, threads):
        kernel, data = application.kernel(threads=count), application.data(quick)
        if isinstance(kernel, TreeKernel):
            kernel, data = kernel.kernel, kernel.named((), data)
        made: Any = ig.value_and_grad(kernel, wrt=application.wrt, of="return")
        times.append(1e3 * harness.measure(made.prepare(**data), quick=quick).least)
        gradients = made(**data)[1]
        found.append(gradients if isinstance(gradients, tuple) else (gradients,))
    return times, all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def row(name: str, application: Application, quick: bool, threads: int = 0) -> bool:
    """Print the row of an application. Returns whether its gradient is right."""
    against_forward, against_differences = errors(application)
    right = against_forward < 1e-10 and against_differences < 1e-5
    kernel, data = flat(application, quick=quick)
    made: Any = ig.value_and_grad(kernel, wrt=application.wrt, of="return")
    primal, gradient = (harness.measure(f.prepare(**data), quick=quick).least for f in (kernel, made))
    more = ""
    if threads:
        times, same = shared(application, threads, quick=quick)
        right, more = right and same, f" {times[0]:.2f} | {times[1]:.2f} |"
    print(f"| {name} | {1e3 * primal:.2f} | {1e3 * gradient:.2f} | {gradient / primal:.2f} | {application.goal} | "
          f"{made.tape_bytes / 1e6:.1f} | {against_differences:.0e} | {'right' if right else 'WRONG'} |{more}",
          flush=True)  # fmt: skip
    return right


def main() -> int:
    """Print the table. Returns 0 when all gradients are right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openmp", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: " + ", ".join(APPLICATIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: checks, not measurements")
    parser.add_argument("--threads", type=int, default=0, help="share loops among so many threads as well")
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads, for a machine with other work")
    given = parser.parse_args()
    if given.cpu:
        harness.use_cpu_time()
    more = f" 1 thread | {given.threads} threads |" if given.threads else ""
    lines = "---|" * (10 if more else 8)
    print(f"| application | primal | gradient | ratio | goal | tape | error | |{more}\n|{lines}")
    chosen = [name for name in APPLICATIONS if name in (given.names or APPLICATIONS)]
    done = [row(name, APPLICATIONS[name], given.quick, given.threads) for name in chosen]
    return 0 if done and all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
