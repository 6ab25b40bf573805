"""Gradients that a C program calls itself, built by `irgrad cc`, beside those of `lib.kernel`: benchmarks/notation.py.

The kernels of run.py whose result is a number get a C function around them that calls `__enzyme_autodiff`; `irgrad cc`
makes a shared library of it at each level. Both gradients run in turns, on buffers that exist already, and are checked
against each other. The column of a level is its time over that of `lib.kernel`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks import native, ours  # noqa: E402
from benchmarks.cases import CASES, Case  # noqa: E402
from benchmarks.harness import distance, measure  # noqa: E402

LEVELS = ("-O0", "-O2", "-O3 -march=native")
NAMES = tuple(case.name for case in CASES if case.operation == "grad")
TOLERANCE = 1e-6
_C_TYPES = {"f64": "double", "f32": "float", "i64": "long", "i32": "int"}


def source(case: Case) -> str:
    """C that adds the gradient of a case to the shadows behind its active arrays."""
    _, arguments = native.parse(case.signature)
    parameters, words = [], []
    for a in arguments:
        kind = f"{_C_TYPES[a.dtype]}{'' if a.shape is None else ' *'}"
        parameters.append(f"{kind} {a.name}")
        words.append(f"enzyme_dup, {a.name}, d_{a.name}" if a.name in case.wrt else f"enzyme_const, {a.name}")
        if a.name in case.wrt:
            parameters.append(f"{kind} d_{a.name}")
    return (f'#include "{native.HERE / "kernels" / case.source}"\nextern int enzyme_const, enzyme_dup;\n'
            f"void __enzyme_autodiff(void *, ...);\nvoid gradient({', '.join(parameters)}) {{\n"
            f"  __enzyme_autodiff((void *){case.function}, {', '.join(words)});\n}}\n")  # fmt: skip


def built(case: Case, level: str, folder: Path) -> Any:
    """The gradient as a function of a shared library."""
    from irgrad.interop.driver import main_cc

    path, output = folder / f"{case.name}.c", folder / f"{case.name}{level.replace(' ', '')}.so"
    path.write_text(source(case), encoding="utf-8")
    if main_cc([*level.split(), "-shared", "-fPIC", str(path), "-o", str(output)]):
        raise RuntimeError(f"{case.name} does not build")
    return ctypes.CDLL(str(output)).gradient


def bound(case: Case, function: Any, data: dict[str, Any]) -> tuple[Callable[[], None], list[Any]]:
    """A call on fixed buffers, and the shadows of its active arguments."""
    _, arguments = native.parse(case.signature)
    values: list[Any] = []
    keep: list[Any] = []
    shadows: dict[str, Any] = {}
    for a in arguments:
        if a.shape is None:
            values.append(native.SCALARS[a.dtype](data[a.name]))
            continue
        keep.append(np.ascontiguousarray(data[a.name]))
        values.append(ctypes.c_void_p(keep[-1].ctypes.data))
        if a.name in case.wrt:
            shadows[a.name] = np.zeros_like(keep[-1])
            values.append(ctypes.c_void_p(shadows[a.name].ctypes.data))

    def call() -> None:
        assert keep and shadows
        function(*values)

    return call, [shadows[name] for name in case.wrt]


def run(case: Case, levels: list[str], rounds: int, *, quick: bool) -> dict[str, float]:
    """Least seconds of `lib.kernel` and of each level. Raises ValueError for a wrong gradient."""
    data = case.inputs(quick)
    _, call = ours.derivative(case, ours.kernel(case), data)
    want = [np.array(row) for row in call()]
    entries: dict[str, Callable[[], Any]] = {"lib.kernel": ours.Entries(call)}
    with tempfile.TemporaryDirectory(prefix="irgrad-notation-") as folder:
        for level in levels:
            entry, shadows = bound(case, built(case, level, Path(folder)), data)
            entry()
            gap = max(distance(got, right) for got, right in zip(shadows, want, strict=True))
            if not gap <= TOLERANCE:  # sums in another order, of which log-sum-exp takes the difference
                raise ValueError(f"{case.name} at {level} is WRONG: {gap:.1e}")
            entries[level] = entry
        times = dict.fromkeys(entries, math.inf)
        for _ in range(rounds):
            for name, entry in entries.items():
                times[name] = min(times[name], measure(entry, quick=quick).least)
    return times


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"among {' '.join(NAMES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes: a check, not a measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write the seconds to this file")
    options = parser.parse_args()
    cases = [case for case in CASES if case.name in (options.names or NAMES)]
    print(f"{'':16}{'lib.kernel ms':>14}" + "".join(f"{level:>20}" for level in LEVELS))
    found = {}
    for case in cases:
        times = found[case.name] = run(case, list(LEVELS), options.rounds, quick=options.quick)
        own = times["lib.kernel"]
        print(f"{case.name:16}{own * 1e3:14.3f}", *(f"{times[level] / own:19.2f}" for level in LEVELS), flush=True)
    ratios = [[times[level] / times["lib.kernel"] for times in found.values()] for level in LEVELS]
    print(f"{'geometric mean':30}", *(f"{math.exp(sum(map(math.log, row)) / len(row)):19.2f}" for row in ratios))
    if options.json:
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
