"""One table of the programs: `python -m benchmarks.futhark [--quick] [--threads N] [NAME ...]`.

Times in ms of native entries on one thread, minima; tape over the bytes of all arguments and results. A program is
right when its gradient is that of a hand-written one (cases of `benchmarks.run`), else when along a random direction it
agrees with forward mode to 1e-10 and with central differences to 1e-6. With `--threads N` the last columns are the
gradient's times where a team of one and of N threads shares the loops that are found independent; it is right only when
both have the same bits. The exit code is 0 when all are right.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

import irgrad as ig  # noqa: E402
from benchmarks import cases, harness, ours  # noqa: E402
from benchmarks.futhark.programs import CASES, PROGRAMS, Program  # noqa: E402

HERE = Path(__file__).parent
HEAD = "| program | primal | gradient | ratio | tape / primal | paper (by hand), or goal | error | |"


def kernel_of(program: Program, threads: int | None = None) -> Any:
    """The program as a kernel of irgrad."""
    lib = ig.load(HERE / f"{program.source}.c", flags=["-fopenmp"] if threads else [])
    options: dict[str, Any] = {name: dict(value) for name, value in program.options}
    return lib.kernel(program.source, program.signature, threads=threads, **options)


def on_threads(threads: int, made: Callable[[int], tuple[Any, Callable[[], Any]]], quick: bool) -> tuple[bool, str]:
    """The columns of a gradient on a team of one thread and of several, and whether both have the same bits. made: for
    a number of threads the native entry, and a call that gives the gradient"""
    if not threads:
        return True, ""
    rows = [made(count) for count in (1, threads)]
    found = [[np.asarray(row) for row in (value if isinstance(value, tuple | list) else [value])]
             for value in (call() for _, call in rows)]  # fmt: skip
    times = [1e3 * harness.measure(entry, quick=quick).least for entry, _ in rows]
    same = all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    return same, f" {times[0]:.2f} | {times[1]:.2f} |"


def errors(kernel: Any, program: Program, arguments: tuple[Any, ...]) -> tuple[float, float]:
    """Reverse mode against forward mode, and against differences, along one direction: relative errors."""
    rng = np.random.default_rng(11)
    names = [p.name for p in kernel.signature.arguments]
    along = [rng.normal(size=np.shape(v)) if name in program.wrt else None
             for name, v in zip(names, arguments, strict=True)]  # fmt: skip
    gradients = ig.grad(kernel, wrt=program.wrt, of="return")(*arguments)
    reverse = sum(float(np.vdot(g, along[names.index(name)])) for name, g in zip(program.wrt, gradients, strict=True))
    _, pushed = ig.jvp(kernel, arguments, along)
    forward = float(pushed[0] if isinstance(pushed, tuple) else pushed)

    def value(step: float) -> float:
        moved = [v if t is None else v + step * t for v, t in zip(arguments, along, strict=True)]
        out = kernel(*moved)
        return float(out[0] if isinstance(out, tuple) else out)

    slopes = [(value(h) - value(-h)) / (2 * h) for h in (2e-6, 1e-6)]
    near = (4 * slopes[1] - slopes[0]) / 3
    return abs(reverse - forward) / abs(forward), min(abs(reverse - row) / abs(forward) for row in (near, *slopes))


def _program(name: str, program: Program, quick: bool, threads: int = 0) -> bool:
    kernel, arguments = kernel_of(program), program.data(quick)
    against_forward, against_differences = errors(kernel, program, arguments)
    right = against_forward < 1e-10 and against_differences < 1e-6
    primal = harness.measure(kernel.prepare(*arguments), quick=quick).least
    made = ig.grad(kernel, wrt=program.wrt, of="return")
    gradient = harness.measure(made.prepare(*arguments), quick=quick).least
    held = sum(np.asarray(v).nbytes for v in arguments) + 8

    def shared(count: int) -> tuple[Any, Callable[[], Any]]:
        gradient = ig.grad(kernel_of(program, count), wrt=program.wrt, of="return")
        return gradient.prepare(*arguments), lambda: gradient(*arguments)

    same, more = on_threads(threads, shared, quick)
    right = right and same
    print(f"| {name} | {1e3 * primal:.2f} | {1e3 * gradient:.2f} | {gradient / primal:.2f} | "
          f"{made.tape_bytes / held:.2f} | {program.goal} | {against_differences:.0e} | {_verdict(right)} |{more}",
          flush=True)  # fmt: skip
    return right


def _case(name: str, known: str, paper: str, quick: bool, threads: int = 0) -> bool:
    case = next(row for row in cases.CASES if row.name == known)
    row = harness.run_case(case, quick=quick, with_jax=False)
    held = sum(np.asarray(v).nbytes for v in case.inputs(quick).values())
    times = [t.least if t else float("nan") for t in (row.primal, row.gradient_native)]

    def shared(count: int) -> tuple[Any, Callable[[], Any]]:
        call = ours.derivative(case, ours.kernel(case, threads=count), case.inputs(quick))[1]
        return ours.Entries(call), call

    same, more = on_threads(threads, shared, quick)
    right = row.verdict == "right" and same
    print(f"| {name} | {1e3 * times[0]:.2f} | {1e3 * times[1]:.2f} | {times[1] / times[0]:.2f} | "
          f"{(row.tape_bytes or 0) / held:.2f} | {paper} | {row.error or 0:.0e} | {_verdict(right)} {row.note} |{more}",
          flush=True)  # fmt: skip
    return right


def _verdict(right: bool) -> str:
    return "right" if right else "WRONG"


def main() -> int:
    """Print the table; 0 when all programs are right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.futhark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: a check, not a measurement")
    parser.add_argument("--threads", type=int, default=0, help="share loops among so many threads as well")
    parser.add_argument("name", nargs="*", help="only these rows: " + ", ".join([*CASES, *PROGRAMS]))
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads, for a machine with other work")
    given = parser.parse_args()
    if given.cpu:
        harness.use_cpu_time()
    more = f" 1 thread | {given.threads} threads |" if given.threads else ""
    print(HEAD + more + "\n" + "|---" * (10 if more else 8) + "|")
    found = [_case(name, *row, given.quick, given.threads) for name, row in CASES.items()
             if not given.name or name in given.name]  # fmt: skip
    found += [_program(name, program, given.quick, given.threads) for name, program in PROGRAMS.items()
              if not given.name or name in given.name]  # fmt: skip
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
