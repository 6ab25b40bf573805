"""One kernel in six spellings, each gradient over the fastest primal: python -m benchmarks.spellings.

(a) is kernels/*.c through `lib.kernel`, whose signature says that buffers do not overlap; (b) to (f) are the sources of
this folder (`spelling.h` says what each letter stands for), built by `irgrad cc -O3 -march=native`. Gradients are
compared with each other, (a) with differences too, before anything is timed. Columns: the time over that of the fastest
primal of all spellings, gradient and, in brackets, value; the last two are the slowest gradient over the best and the
geometric mean of all over it, where a spelling whose own value takes more than 1.25 times the fastest may be slower by
as much. Times are CPU time; each round runs all spellings in turn with their memory in the cache, ratios are taken
within rounds, the table has their medians. A kernel with arrays as results (ba, hand, brusselator) is half the squared
norm of them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import native, ours
from benchmarks.cases import BA, BRUSSELATOR, CASES, HAND, Case
from benchmarks.harness import distance

SPELLINGS = "bcdef"


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def _cost(name: str, function: str, inputs: str, wrt: str) -> Case:
    """A kernel with arrays as results, by the half squared norm of them."""
    signature, active = f"f64({inputs})", tuple(wrt.split())
    return replace(_case(name), name=function, function=function, signature=signature, wrt=active, operation="grad")


def _without_outputs(arguments: str) -> str:
    return ", ".join(a for a in re.split(r", (?=out |[fi]\d)", arguments) if not a.startswith("out "))


KERNELS = {
    "gmm": _case("gmm-10"),
    "gmm-64": _case("gmm-64"),
    "burgers": _case("burgers-swap"),
    "lstm": _case("lstm-2"),
    "ba": _cost("ba", "ba_cost", f"{BA}, i64 p", "cameras points weights"),
    "hand": _cost("hand", "hand_cost", _without_outputs(HAND), "theta"),
    "brusselator": _cost("brusselator-vjp", "brusselator_cost", _without_outputs(BRUSSELATOR), "u v"),
} | {
    name: _case(name)
    for name in (
        "kmeans", "matvec", "mlp", "logsumexp", "nbody", "matmul", "expsin", "product", "recurrence", "histogram",
        "gather", "rk4",
    )
}  # fmt: skip
TOLERANCE = 1e-7
STEP, DIFFERENCE = 3e-7, 1e-4
SLOW = 1.25
SHORTEST = 5e-3
Calls = tuple[Callable[[], Any], Callable[[], Any]]
Round = dict[str, tuple[float, float]]


class Spelling:
    """A kernel in one spelling, built, with inputs of its own: `primal` and `gradient` take no arguments."""

    def __init__(self, case: Case, letter: str, data: dict[str, Any], folder: Path) -> None:
        from irgrad.interop.driver import main_cc

        source = Path(__file__).parent / f"{re.split('[-_]', case.name)[0]}.cpp"
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
        lasts = [a.shape[-1] if a.ndim > 1 else a.size // 10 if a.size % 10 == 0 else a.size for a in arrays]
        folds = [(a.size // last, last) for a, last in zip(arrays, lasts, strict=True)]
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


def difference(case: Case, data: dict[str, Any], gradient: list[Any]) -> float:
    """How far a gradient is from central differences of the value in one direction, over the gradient's norm."""
    source, rng = native.HERE / "kernels" / case.source, np.random.default_rng(0)
    along = [rng.normal(size=np.shape(data[name])) for name in case.wrt]

    def value(step: float) -> float:
        moved = {name: data[name] + step * by for name, by in zip(case.wrt, along, strict=True)}
        return float(native.bind(source, case.function, case.signature, {**data, **moved})()[0])

    slope = (value(STEP) - value(-STEP)) / (2 * STEP)
    found = sum(float(np.vdot(row, by)) for row, by in zip(gradient, along, strict=True))
    return abs(slope - found) / math.sqrt(sum(float(np.vdot(row, row)) for row in gradient))


def entries_of(case: Case, data: dict[str, Any], letters: str, folder: Path) -> dict[str, Calls]:
    """For each spelling a call of its gradient and of its value. Raises ValueError for a wrong gradient."""
    inputs = native.bind(native.HERE / "kernels" / case.source, case.function, case.signature, data)
    _, call = ours.derivative(case, ours.kernel(case), data)
    want = [np.array(row) for row in call()]
    gap = difference(case, data, want)
    if not gap <= DIFFERENCE:
        raise ValueError(f"{case.name} (a) is WRONG: {gap:.1e} from differences")
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


def _repeated(call: Callable[[], Any]) -> Callable[[], float]:
    """CPU seconds of one call, over as many in a row as the clock wants; its memory is in the cache."""

    def seconds(repeats: int) -> float:
        call()
        start = time.process_time()
        for _ in range(repeats):
            call()
        return (time.process_time() - start) / repeats

    repeats = max(1, round(SHORTEST / max(seconds(1), 1e-7)))
    return lambda: seconds(repeats)


def run(case: Case, letters: str, rounds: int, *, quick: bool) -> list[Round]:
    """Seconds of gradient and value by spelling, all of them in turn in each round."""
    with tempfile.TemporaryDirectory(prefix="irgrad-spellings-") as folder:
        entries = entries_of(case, case.inputs(quick), letters, Path(folder))
        timed = {letter: [_repeated(call) for call in calls] for letter, calls in entries.items()}
        found: list[Round] = []
        for number in range(rounds):
            order = list(timed)[:: 1 if number % 2 == 0 else -1]
            times = {letter: [call() for call in timed[letter]] for letter in order}
            found.append({letter: (times[letter][0], times[letter][1]) for letter in timed})
    return found


class Table:
    """What the rounds say. Each ratio is taken within a round, in which the machine did not change much, and is the
    median over rounds."""

    def __init__(self, rounds: list[Round]) -> None:
        self.rounds = rounds
        self.letters = list(rounds[0])
        first = self.letters[0]
        self.fastest = min(self.letters, key=lambda letter: self._ratio((letter, 1), (first, 1)))
        self.primal = statistics.median(times[self.fastest][1] for times in rounds)

    def _ratio(self, above: tuple[str, int], below: tuple[str, int]) -> float:
        return statistics.median(r[above[0]][above[1]] / r[below[0]][below[1]] for r in self.rounds)

    def cell(self, letter: str) -> tuple[float, float]:
        """Gradient and value over the fastest value of all spellings."""
        return self._ratio((letter, 0), (self.fastest, 1)), self._ratio((letter, 1), (self.fastest, 1))

    def spread(self) -> tuple[float, float]:
        """The slowest gradient over the best, and the geometric mean of all over the best."""
        best = min(self.letters, key=lambda x: self._ratio((x, 0), (self.fastest, 1)))
        slower = {x: self._ratio((x, 1), (self.fastest, 1)) for x in self.letters}
        own = {x: by if by > SLOW else 1.0 for x, by in slower.items()}
        ratios = [max(1.0, self._ratio((x, 0), (best, 0)) / own[x]) for x in self.letters]
        return max(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios))


def main(words: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"among {' '.join(KERNELS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes: a check, not a measurement")
    parser.add_argument("--only", default=SPELLINGS, help="letters of the spellings beside (a)")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--json", help="write the seconds of all rounds to this file")
    options = parser.parse_args(words)
    letters = "a" + options.only
    print(f"{'':11}{'primal ms':>10}" + "".join(f"{f'({x})':>14}" for x in letters) + f"{'worst':>8}{'mean':>6}")
    found, wrong = {}, 0
    for name in options.names or KERNELS:
        case = KERNELS[name]
        try:
            rounds = found[name] = run(case, options.only, options.rounds, quick=options.quick)
        except ValueError as caught:
            print(f"{name:11} {caught}", flush=True)
            wrong = 1
            continue
        table = Table(rounds)
        cells = "".join("{:7.2f} ({:4.2f})".format(*table.cell(letter)) for letter in table.letters)
        worst, mean = table.spread()
        print(f"{name:11}{table.primal * 1e3:10.3f}{cells}{worst:8.2f}{mean:6.2f}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")
    return wrong


if __name__ == "__main__":
    os.environ.setdefault("IRGRAD_CACHE", "0")
    if "GLIBC_TUNABLES" not in os.environ:  # pages as large as those of NumPy, whose arrays (a) has; read at the start
        os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.spellings", *sys.argv[1:]])
    sys.exit(main())
