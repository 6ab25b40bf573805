"""One kernel in six spellings, each gradient over the fastest primal: python -m benchmarks.spellings.

(a) is kernels/*.c through `lib.kernel`, whose signature says that buffers do not overlap; (b) to (f) are the sources of
this folder (`spelling.h` says what each letter stands for), built by `irgrad cc -O3 -march=native`. Gradients are
compared before anything is timed. Columns: the time over that of the fastest primal of all spellings, gradient and, in
brackets, value; the last two are the slowest spelling over the best and their geometric mean over it, where a spelling
whose own value takes more than 1.25 times the fastest is judged against its value.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import native, ours
from benchmarks.cases import CASES, Case
from benchmarks.harness import distance, measure

SPELLINGS = "bcdef"
KERNELS = {
    "gmm": "gmm-10", "gmm-64": "gmm-64", "kmeans": "kmeans", "burgers": "burgers-swap", "matvec": "matvec",
    "mlp": "mlp", "logsumexp": "logsumexp", "nbody": "nbody", "matmul": "matmul",
}  # fmt: skip
TOLERANCE = 1e-7
SLOW = 1.25
Calls = tuple[Callable[[], Any], Callable[[], Any]]


class Spelling:
    """A kernel in one spelling, built, with inputs of its own: `primal` and `gradient` take no arguments."""

    def __init__(self, case: Case, letter: str, data: dict[str, Any], folder: Path) -> None:
        from irgrad.interop.driver import main_cc

        source = Path(__file__).parent / f"{case.name.split('-')[0]}.cpp"
        output = folder / f"{case.name}-{letter}.so"
        define = f"-DSPELLING={SPELLINGS.index(letter) + 1}"
        if main_cc(["-O3", "-march=native", define, "-shared", "-fPIC", str(source), "-o", str(output)]):
            raise RuntimeError(f"{source.name} does not build as ({letter})")
        library = ctypes.CDLL(str(output))
        self.primal, self.gradient, self._fetch = library.primal, library.gradient, library.fetch
        self.primal.restype = ctypes.c_double
        _, arguments = native.parse(case.signature)
        arrays = [np.ascontiguousarray(data[a.name], dtype=float) for a in arguments if a.shape is not None]
        self.names = [a.name for a in arguments if a.shape is not None]
        self.shapes = [array.shape for array in arrays]
        self._setup(library.setup, case, arrays, data)

    def _setup(self, setup: Any, case: Case, arrays: list[Any], data: dict[str, Any]) -> None:
        _, arguments = native.parse(case.signature)
        folds = [a.shape if a.ndim == 2 else (10, a.size // 10) if a.size % 10 == 0 else (1, a.size) for a in arrays]
        integers = [data[a.name] for a in arguments if a.shape is None and a.dtype == "i64"]
        reals = [data[a.name] for a in arguments if a.shape is None and a.dtype == "f64"]

        def longs(numbers: list[int], count: int) -> Any:
            return (ctypes.c_long * count)(*numbers)

        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        rows, columns = (longs([fold[i] for fold in folds], len(arrays)) for i in range(2))
        setup(len(arrays), pointers, rows, columns, longs(integers, 8), (ctypes.c_double * 4)(*reals))

    def shadow(self, name: str) -> Any:
        """The gradient by one argument."""
        out = np.empty(self.shapes[self.names.index(name)])
        self._fetch(self.names.index(name), ctypes.c_void_p(out.ctypes.data))
        return out


def entries_of(case: Case, data: dict[str, Any], letters: str, folder: Path) -> dict[str, Calls]:
    """For each spelling a call of its gradient and of its value. Raises ValueError for a wrong gradient."""
    inputs = native.bind(native.HERE / "kernels" / case.source, case.function, case.signature, data)
    _, call = ours.derivative(case, ours.kernel(case), data)
    want = [np.array(row) for row in call()]
    found: dict[str, Calls] = {"a": (ours.Entries(call), inputs)}
    for letter in letters:
        spelling = Spelling(case, letter, data, folder)
        spelling.gradient()
        gap = distance([spelling.shadow(name) for name in case.wrt], want)
        value, right = spelling.primal(), inputs()[0]
        if not (gap <= TOLERANCE and abs(value - right) <= TOLERANCE * abs(right)):
            raise ValueError(f"{case.name} ({letter}) is WRONG: gradient {gap:.1e}, value {value} and {right}")
        found[letter] = (spelling.gradient, spelling.primal)
    return found


def run(case: Case, letters: str, rounds: int, *, quick: bool) -> dict[str, tuple[float, float]]:
    """Least seconds of gradient and value, by spelling."""
    with tempfile.TemporaryDirectory(prefix="irgrad-spellings-") as folder:
        entries = entries_of(case, case.inputs(quick), letters, Path(folder))
        times = dict.fromkeys(entries, (math.inf, math.inf))
        for _ in range(rounds):
            for letter, (gradient, primal) in entries.items():
                before = times[letter]
                new = measure(gradient, quick=quick).least, measure(primal, quick=quick).least
                times[letter] = min(before[0], new[0]), min(before[1], new[1])
    return times


def spread(times: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """The slowest spelling over the best, and the geometric mean of all over the best."""
    fastest = min(primal for _, primal in times.values())
    costs = [g / (p if p > SLOW * fastest else fastest) for g, p in times.values()]
    ratios = [cost / min(costs) for cost in costs]
    return max(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios))


def main(words: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"among {' '.join(KERNELS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes: a check, not a measurement")
    parser.add_argument("--only", default=SPELLINGS, help="letters of the spellings beside (a)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", help="write the seconds to this file")
    options = parser.parse_args(words)
    letters = "a" + options.only
    print(f"{'':11}{'primal ms':>10}" + "".join(f"{f'({x})':>14}" for x in letters) + f"{'worst':>8}{'mean':>6}")
    found, wrong = {}, 0
    for name in options.names or KERNELS:
        case = next(case for case in CASES if case.name == KERNELS[name])
        try:
            times = found[name] = run(case, options.only, options.rounds, quick=options.quick)
        except ValueError as caught:
            print(f"{name:11} {caught}", flush=True)
            wrong = 1
            continue
        fastest = min(primal for _, primal in times.values())
        cells = "".join(f"{g / fastest:7.2f} ({p / fastest:4.2f})" for g, p in times.values())
        worst, mean = spread(times)
        print(f"{name:11}{fastest * 1e3:10.3f}{cells}{worst:8.2f}{mean:6.2f}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")
    return wrong


if __name__ == "__main__":
    os.environ.setdefault("IRGRAD_CACHE", "0")
    sys.exit(main())
