"""Parallel constructs against jnp and `lax.associative_scan` in one run: `python -m benchmarks.parallel_constructs`.

Per case: time of the fold, of its gradient (value and gradient of a weighted sum of the results) and their ratio, ours
under JAX (`jit` of both) and jnp's, with the ratios that Futhark's paper has for the GPU. Every gradient is compared
with jnp's first. Minima of some runs, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import jax  # noqa: E402 - the clone is not installed
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import irgrad as ig  # noqa: E402

jax.config.update("jax_enable_x64", True)
BINS = 1000
SOURCE = r"""
double add(double a, double b) { return a + b; }
double mul(double a, double b) { return a * b; }
double least(double a, double b) { return b < a ? b : a; }
void linear(double a0, double b0, double a1, double b1, double *a, double *b) { *a = a0 * a1; *b = b0 * a1 + b1; }
void product(const double *restrict a, const double *restrict b, double *restrict c) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) c[2 * i + j] = a[2 * i] * b[j] + a[2 * i + 1] * b[2 + j];
}
"""


def _composed(a: Any, b: Any) -> Any:
    return a[0] * b[0], a[1] * b[0] + b[1]


def _sorted_bins(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A histogram of any operator in jnp: by a sort and a segmented scan, as Futhark makes it."""

    def folded(a: Any, b: Any) -> Any:
        (start, x), (begins, y) = a, b
        return start | begins, jnp.where(begins[:, None, None], y, operator(x, y))

    def bins(at: Any, x: Any) -> Any:
        order = jnp.argsort(at, stable=True)
        at, x = at[order], x[order]
        begins = jnp.concatenate([jnp.ones(1, bool), at[1:] != at[:-1]])
        _, y = jax.lax.associative_scan(folded, (begins, x))
        ends = jnp.concatenate([at[1:] != at[:-1], jnp.ones(1, bool)])
        found = jnp.tile(jnp.eye(2), (BINS, 1, 1))
        return found.at[jnp.where(ends, at, BINS)].set(y, mode="drop")

    return bins


def cases(n: int) -> dict[str, tuple[Any, Any, tuple[Any, ...], str]]:
    """Name -> ours, jnp's, arguments, the paper's ratio on the GPU."""
    p, lib, rng = ig.parallel, ig.load(SOURCE), np.random.default_rng(0)
    add, mul, least = (lib.kernel(name) for name in ("add", "mul", "least"))
    linear = lib.kernel("linear", "void(f64 a0, f64 b0, f64 a1, f64 b1, out f64 a, out f64 b)")
    product = lib.kernel("product", "void(f64[2,2] a, f64[2,2] b, out f64[2,2] c)")
    x, y = 1 + 1e-3 * rng.normal(size=(2, n))
    matrices, at = np.eye(2) + 1e-3 * rng.normal(size=(n, 2, 2)), rng.integers(0, BINS, n)

    def scanned(operator: Any) -> Any:
        return lambda *x: jax.lax.associative_scan(operator, x if len(x) > 1 else x[0])

    def last(operator: Any) -> Any:
        return lambda *x: jax.tree.map(lambda row: row[-1], scanned(operator)(*x))

    return {
        "reduce +": (p.reduce(add, 0.0), jnp.sum, (x,), "1.0-1.5"),
        "reduce *": (p.reduce(mul, 1.0), jnp.prod, (x,), "2.4-2.9"),
        "reduce min": (p.reduce(least, np.inf), jnp.min, (x,), "2.5"),
        "reduce linear": (p.reduce(linear, (1.0, 0.0)), last(_composed), (x, y), "3.3-4.1"),
        "reduce 2x2": (p.reduce(product, np.eye(2)), last(jnp.matmul), (matrices,), "4.8-6.4"),
        "scan +": (p.scan(add), jnp.cumsum, (x,), "1.2-1.8"),
        "scan *": (p.scan(mul), jnp.cumprod, (x,), "3.3-3.8"),
        "scan min": (p.scan(least), jax.lax.cummin, (x,), "1.3"),
        "scan linear": (p.scan(linear), scanned(_composed), (x, y), "3.3-3.7"),
        "scan 2x2": (p.scan(product), scanned(jnp.matmul), (matrices,), "4.0-4.6"),
        "histogram +": (p.histogram(add, 0.0, BINS), lambda at, x: jnp.zeros(BINS).at[at].add(x), (at, x), "1.5-1.9"),
        "histogram min": (p.histogram(least, np.inf, BINS), lambda at, x: jnp.full(BINS, np.inf).at[at].min(x),
                          (at, x), "1.8-3.9"),
        "histogram 2x2": (p.histogram(product, np.eye(2), BINS), _sorted_bins(jnp.matmul), (at, matrices), "7.3-81"),
    }  # fmt: skip


def _gradient(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Value and gradient of the results times fixed weights."""
    floats = tuple(i for i, v in enumerate(arguments) if v.dtype.kind == "f")
    rows = jax.tree.leaves(jax.eval_shape(function, *arguments))
    weights = [jnp.asarray(np.random.default_rng(7).normal(size=row.shape)) for row in rows]

    def weighted(weights: Any, *x: Any) -> Any:
        return sum(jnp.vdot(w, row) for w, row in zip(weights, jax.tree.leaves(function(*x)), strict=True))

    made = jax.jit(jax.value_and_grad(weighted, tuple(1 + i for i in floats)))
    return lambda *x: made(weights, *x)


def _least(functions: list[Any], arguments: tuple[Any, ...], rounds: int) -> list[float]:
    """The least time of each function in ms, taken in turns."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for number, function in enumerate(functions):
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            times[number] = min(times[number], time.perf_counter() - start)
    return [1e3 * t for t in times]


def main() -> None:
    """Print the table. Exits with 1 where a gradient is not jnp's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1_000_000, help="elements")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("case", nargs="*", help="only these, for example 'scan +'")
    given = parser.parse_args()
    print(f"{given.n} elements; times in ms")
    print("| construct | fold | with gradient | ratio | paper (GPU) | jnp | with gradient | ratio | ours / jnp |")
    print("|---|---|---|---|---|---|---|---|---|")
    wrong = False
    for name, (ours, theirs, arguments, paper) in cases(given.n).items():
        if given.case and name not in given.case:
            continue
        x = tuple(map(jnp.asarray, arguments))
        functions = [jax.jit(ours), _gradient(ours, x), jax.jit(theirs), _gradient(theirs, x)]
        for a, b in zip(jax.tree.leaves(functions[1](*x)), jax.tree.leaves(functions[3](*x)), strict=True):
            wrong |= not np.allclose(a, b, rtol=1e-6, atol=1e-9 * float(jnp.abs(b).max()))
        fold, gradient, jnp_fold, jnp_gradient = _least(functions, x, given.rounds)
        print(f"| {name} | {fold:.2f} | {gradient:.2f} | {gradient / fold:.1f} | {paper} | {jnp_fold:.2f} | "
              f"{jnp_gradient:.2f} | {jnp_gradient / jnp_fold:.1f} | {gradient / jnp_gradient:.2f} |"
              f"{' WRONG' if wrong else ''}", flush=True)  # fmt: skip
    sys.exit(wrong)


if __name__ == "__main__":
    main()
