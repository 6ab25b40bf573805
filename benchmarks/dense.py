"""Dense kernels, 5x5 blocks, hydrodynamics: gradient with value over primal, by `python -m benchmarks.dense`.

Each gradient is compared with central differences before it is timed. Columns: CPU milliseconds of the primal (clang
-O3 -march=native) and of the gradient's native entry, their ratio, the tape. Arrays that a call changes are set back
before each one, and what that takes is taken off. Least of some runs, primal and gradient in turns, one thread.

    python -m benchmarks.dense              # all, with the median of the twelve dense kernels
    python -m benchmarks.dense lu syrk      # some
    python -m benchmarks.dense --quick      # reduced sizes: a check of all gradients, not a measurement
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks import native  # noqa: E402
from benchmarks.harness import SHORTEST  # noqa: E402
from benchmarks.ours import Entries  # noqa: E402

TOLERANCE = 1e-6
Array = np.ndarray[Any, Any]
Inputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dense:
    """A kernel: its signature, and its inputs at a size."""

    name: str
    signature: str
    inputs: Callable[[np.random.Generator, int], Inputs]
    size: int
    source: str = "dense.c"
    goal: float = 3.5


def _matrix(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape)


def _products(rng: np.random.Generator, n: int, names: str) -> Inputs:
    arrays = {name: _matrix(rng, n, n) for name in names}
    return {**arrays, "alpha": 1.5, "beta": 1.2}


def _positive(rng: np.random.Generator, n: int) -> Array:
    a = _matrix(rng, n, n)
    return a @ a.T / n + 2 * np.eye(n)


def _heat(rng: np.random.Generator, n: int) -> Inputs:
    return {"u": rng.uniform(0, 1, (n, n)), "steps": max(n // 10, 2), "across": 0.8, "along": 0.6}


def _fields(rng: np.random.Generator, n: int) -> Inputs:
    steps = max(n // 4, 2)
    fields = {name: _matrix(rng, n, n) for name in ("ex", "ey", "hz")}
    return {**fields, "source": _matrix(rng, steps), "steps": steps}


def _blocks(rng: np.random.Generator, n: int) -> Inputs:
    u = rng.uniform(-0.2, 0.2, (12, 12, 12, 5)) + np.array([1.0, 0, 0, 0, 2.0])
    return {"u": u, "rhs": np.zeros_like(u), "steps": n, "dt": 0.02}


def _mesh(rng: np.random.Generator, n: int) -> Inputs:
    grid = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)
    corner = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    columns = [grid[i : n + i, j : n + j, k : n + k].ravel() for i, j, k in corner]
    corners = rng.permutation(np.stack(columns, axis=1)).astype(np.int32)
    x = np.stack(np.meshgrid(*[np.arange(n + 1.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    x += rng.uniform(-0.1, 0.1, x.shape)
    x = x[order := rng.permutation(len(x))]  # nodes in no order
    corners = np.argsort(order)[corners].astype(np.int32)
    energy = rng.uniform(0.5, 1.5, len(corners))
    return {
        "x": x, "v": rng.uniform(-0.1, 0.1, x.shape), "energy": energy, "mass": rng.uniform(0.8, 1.2, len(x)),
        "start": rng.uniform(0.95, 1.05, len(corners)), "corners": corners, "steps": 4 if n < 4 else 200, "dt": 2e-3,
    }  # fmt: skip


CASES = (
    Dense("cholesky", "void(inout f64[n,n] a, i64 n)", lambda r, n: {"a": _positive(r, n)}, 240),
    Dense("lu", "void(inout f64[n,n] a, i64 n)", lambda r, n: {"a": _positive(r, n) + _matrix(r, n, n) / n}, 200),
    Dense("syrk", "void(f64[n,m] a, inout f64[n,n] c, i64 n, i64 m, f64 alpha, f64 beta)",
          lambda r, n: _products(r, n, "ac"), 200),
    Dense("syr2k", "void(f64[n,m] a, f64[n,m] b, inout f64[n,n] c, i64 n, i64 m, f64 alpha, f64 beta)",
          lambda r, n: _products(r, n, "abc"), 200),
    Dense("trisolv", "void(f64[n,n] l, f64[n] b, out f64[n] x, i64 n)",
          lambda r, n: {"l": _matrix(r, n, n) / n + np.eye(n), "b": _matrix(r, n)}, 400),
    Dense("durbin", "void(f64[n] r, out f64[n] y, i64 n)", lambda r, n: {"r": _matrix(r, n) / (2 * n)}, 400),
    Dense("gramschmidt", "void(inout f64[m,n] a, inout f64[n,n] r, inout f64[m,n] q, i64 m, i64 n)",
          lambda r, n: {"a": _matrix(r, n, n) + 2 * np.eye(n), "r": np.zeros((n, n)), "q": np.zeros((n, n))}, 160),
    Dense("adi", "void(inout f64[n,n] u, i64 n, i64 steps, f64 across, f64 along)", _heat, 120),
    Dense("fdtd_2d", "void(inout f64[n,n] ex, inout f64[n,n] ey, inout f64[n,n] hz, f64[steps] source, i64 n, "
          "i64 steps)", _fields, 200),
    Dense("jacobi_2d", "void(inout f64[n,n] a, inout f64[n,n] b, i64 n, i64 steps)",
          lambda r, n: {"a": _matrix(r, n, n), "b": _matrix(r, n, n), "steps": max(n // 4, 2)}, 200),
    Dense("seidel_2d", "void(inout f64[n,n] a, i64 n, i64 steps)",
          lambda r, n: {"a": _matrix(r, n, n), "steps": max(n // 8, 2)}, 160),
    Dense("intervals", "f64(f64[n+1] p, inout f64[n,n] c, i64 n)",
          lambda r, n: {"p": r.uniform(1, 9, n + 1), "c": np.zeros((n, n)), "n": n}, 200),
    Dense("adi_blocks", "void(inout f64[12,12,12,5] u, inout f64[12,12,12,5] rhs, i64 steps, f64 dt)", _blocks, 3,
          "adi_blocks.c", 5.0),
    Dense("hydrodynamics", "void(inout f64[nodes,3] x, inout f64[nodes,3] v, inout f64[elements] energy, "
          "f64[nodes] mass, f64[elements] start, i32[elements,8] corners, i64 nodes, "
          "i64 elements, i64 steps, f64 dt)", _mesh, 8, "hydrodynamics.c", 5.0),
)  # fmt: skip


class Case:
    """A kernel with inputs, cotangents of what it gives, and its gradient as native entries."""

    def __init__(self, dense: Dense, size: int, options: dict[str, Any]) -> None:
        import irgrad

        rng = np.random.default_rng(0)
        self.dense, self.data = dense, dense.inputs(rng, size)
        self.source = native.HERE / "kernels" / dense.source
        self.kernel = irgrad.load(self.source).kernel(dense.name, dense.signature, **options)
        self.inputs = native.inputs_of(dense.signature, self.data)
        outputs = self._outputs(self.inputs)
        self.seeds = [rng.normal(size=np.shape(o)) for o in outputs]
        self.pullback = irgrad.vjp(self.kernel, *self._copies(self.inputs))[1]
        self.asked = tuple(self.seeds) if len(self.seeds) > 1 else self.seeds[0]
        self.direction = [rng.normal(size=a.shape) if _real(a) else None for a in self.inputs]

    def _copies(self, values: list[Any]) -> list[Any]:
        return [v.copy() if isinstance(v, np.ndarray) else v for v in values]

    def _outputs(self, values: list[Any]) -> list[Any]:
        found = self.kernel(*self._copies(values))
        return list(found) if isinstance(found, tuple) else [found]

    def error(self) -> float:
        """Distance of the gradient from central differences along a direction, relative to the derivative there; the
        least of three steps, since longer ones pass kinks and shorter ones lose digits."""
        rows = self.pullback(self.asked)
        rows = rows if isinstance(rows, tuple | list) else (rows,)
        reals = [d for d in self.direction if d is not None]
        arrays = [r for r in rows if isinstance(r, np.ndarray) and r.dtype == float and r.ndim]
        found = sum(float(np.sum(r * d)) for r, d in zip(arrays, reals, strict=True))
        wanted = map(self._slope, (1e-5, 1e-6, 1e-7))
        return min(abs(found - each) / max(abs(each), 1e-300) for each in wanted)

    def _slope(self, step: float) -> float:
        sides = [self._weighted(factor * step) for factor in (2, 1, -1, -2)]
        return (-sides[0] + 8 * sides[1] - 8 * sides[2] + sides[3]) / (12 * step)

    def _weighted(self, step: float) -> float:
        moved = [a if d is None else a + step * d for a, d in zip(self.inputs, self.direction, strict=True)]
        return sum(float(np.sum(s * o)) for s, o in zip(self.seeds, self._outputs(moved), strict=True))

    def primal(self) -> Callable[[], float]:
        """CPU seconds of the primal by each call."""
        returned, arguments = native.parse(self.dense.signature)
        function = getattr(native.library(self.source), self.dense.name)
        function.restype = ctypes.c_double if returned == "f64" else None
        sizes, values, arrays = native.shapes(arguments, self.data), [], []
        for a in arguments:
            if a.shape is None:
                values.append(native.SCALARS[a.dtype](self.data.get(a.name, sizes.get(a.name))))
                continue
            array = a.zeros(sizes) if a.flow == "out" else np.array(self.data[a.name], order="C")
            arrays.append(array)
            values.append(ctypes.c_void_p(array.ctypes.data))
        return _timed(lambda: function(*values), arrays)

    def gradient(self) -> tuple[Callable[[], float], Callable[[], int]]:
        """CPU seconds of the native entry by each call; the bytes of its tape."""
        entries = Entries(lambda: self.pullback(self.asked))
        return _timed(entries, entries.buffers, entries.before), lambda: entries.tape_bytes() or 0


def _real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == float


def _timed(call: Callable[[], Any], arrays: list[Array], saved: list[Array] | None = None) -> Callable[[], float]:
    """CPU seconds of a call, the arrays that it changes set back before each, without what that takes."""
    saved = [a.copy() for a in arrays] if saved is None else saved
    for array, old in zip(arrays, saved, strict=True):
        np.copyto(array, old)
    call()
    changed = [(a, old) for a, old in zip(arrays, saved, strict=True) if not np.array_equal(a, old, equal_nan=True)]

    def restore() -> None:
        for array, old in changed:
            np.copyto(array, old)

    def clock(run: Callable[[], Any], repeats: int) -> float:
        start = time.process_time()
        for _ in range(repeats):
            run()
        return (time.process_time() - start) / repeats

    def both() -> None:
        assert arrays  # kept: the call has their addresses
        restore()
        call()

    repeats = max(1, round(SHORTEST / max(clock(both, 1), 1e-7)))
    return lambda: clock(both, repeats) - (clock(restore, repeats) if changed else 0.0)


def _row(dense: Dense, options: Any) -> dict[str, Any]:
    case = Case(dense, dense.size if not options.quick else max(dense.size // 16, 3), options.kernel)
    row: dict[str, Any] = {"name": dense.name, "error": case.error(), "goal": dense.goal}
    if not row["error"] < TOLERANCE:
        return row
    primal, (gradient, tape) = case.primal(), case.gradient()
    times = [(primal(), gradient()) for _ in range(1 if options.quick else options.rounds)]
    row["primal"], row["gradient"] = (min(column) for column in zip(*times, strict=True))
    return {**row, "ratio": row["gradient"] / row["primal"], "tape": tape()}


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where a gradient is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("names", nargs="*", help="kernels; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--rounds", type=int, default=11, help="runs of which the least counts")
    parser.add_argument("--kernel", type=json.loads, default={}, help="options of lib.kernel, as JSON")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no kernel named {', '.join(sorted(unknown))}")
    print(f"{'kernel':14} {'primal ms':>10} {'gradient ms':>12} {'ratio':>7} {'goal':>5} {'tape kB':>10}  error")
    rows = []
    for dense in CASES:
        if options.names and dense.name not in options.names:
            continue
        row = _row(dense, options)
        rows.append(row)
        if "ratio" not in row:
            print(f"{dense.name:14} WRONG by {row['error']:.1e}", flush=True)
            continue
        print(f"{dense.name:14} {row['primal'] * 1e3:10.3f} {row['gradient'] * 1e3:12.3f} {row['ratio']:7.2f} "
              f"{dense.goal:5.1f} {row['tape'] / 1e3:10.1f}  {row['error']:.0e}", flush=True)  # fmt: skip
    ratios = [r["ratio"] for d, r in zip(CASES, rows, strict=False) if d.source == "dense.c" and "ratio" in r]
    if not options.names and ratios:
        print(f"the twelve dense kernels: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0 if all("ratio" in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
