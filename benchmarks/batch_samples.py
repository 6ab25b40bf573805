"""Many samples in one call: `python benchmarks/batch_samples.py [names...] [--quick] [--no-jax]`.

For each kernel, the time per sample of single calls from Python, of a loop of scalar calls in C (`-O3 -march=native`,
the gradient by hand), of JAX (`jit(vmap(value_and_grad))`), and of irgrad's batched call on one and on two threads,
with results allocated by the caller. Every result is compared with single calls first; a wrong one prints WRONG.
Times are minima. JAX runs in a process of its own with as many threads as cores it may use.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks.harness import distance, measure  # noqa: E402
from benchmarks.native import HERE, library  # noqa: E402

TOLERANCE = 1e-9
OPTION = "f64(f64 spot, f64 strike, f64 rate, f64 vol, f64 time)"
RK4 = "f64(f64[3] y0, f64[3] par, i64 steps, f64 dt)"


@dataclass(frozen=True, slots=True)
class Samples:
    """One line: a kernel, its batched arguments and what is differentiated."""

    name: str
    source: str
    function: str
    signature: str
    wrt: tuple[str, ...]
    shared: tuple[str, ...] = ()


LINES = (
    Samples("option", "samples.c", "option", OPTION, ("spot", "strike", "rate", "vol", "time")),
    Samples("rk4", "lorenz.c", "rk4", RK4, ("y0", "par"), ("par", "steps", "dt")),
)


def inputs(line: Samples, n: int) -> dict[str, Any]:
    """The data of n samples."""
    rng = np.random.default_rng(5)
    if line.name == "option":
        bounds = {"spot": (50, 150), "strike": (50, 150), "rate": (0.01, 0.05), "vol": (0.1, 0.5), "time": (0.1, 2)}
        return {k: rng.uniform(*row, n) for k, row in bounds.items()}
    return {"y0": rng.normal(size=(n, 3)), "par": np.array([10.0, 28.0, 8 / 3]), "steps": 200, "dt": 0.01}


def c_loop(line: Samples, data: dict[str, Any], gradient: bool) -> Callable[[], list[Any]] | None:
    """The loop of scalar calls in C; for kernels that have one."""
    if line.name != "option":
        return None
    n = len(data["spot"])
    native = getattr(library(HERE / "manual" / "samples.c"), "option_loop_grad" if gradient else "option_loop")
    out, slopes = np.empty(n), np.empty((5, n))
    arrays = [*data.values(), out, *([slopes] if gradient else [])]
    values = [ctypes.c_void_p(a.ctypes.data) for a in arrays]

    def call() -> list[Any]:
        native(*values, ctypes.c_long(n))
        return [out, *(slopes if gradient else ())]

    return call


def batched(line: Samples, kernel: Any, data: dict[str, Any], gradient: bool, threads: int) -> Callable[[], list[Any]]:
    """irgrad's call, with its results in arrays that exist already."""
    from irgrad import engine

    axes = {k: 0 for k in data if k not in line.shared}
    options: dict[str, Any] = {"in_axes": axes, "threads": threads}
    if not gradient:
        made = engine.batch(kernel, **options)
        out = np.empty(len(next(iter(data.values()))))
        return lambda: [made(*data.values(), out=out)]
    both = engine.batch_value_and_grad(kernel, wrt=line.wrt, **options)
    value, slopes = both(*data.values())

    def call() -> list[Any]:
        both(*data.values(), out=(value, slopes))
        return [value, *slopes]

    return call


def single(line: Samples, kernel: Any, data: dict[str, Any], gradient: bool, count: int) -> Callable[[], list[Any]]:
    """Single calls from Python for the first `count` samples."""
    from irgrad import engine

    function = engine.value_and_grad(kernel, wrt=line.wrt) if gradient else kernel
    rows = [[v if k in line.shared else v[i] for k, v in data.items()] for i in range(count)]

    def call() -> list[Any]:
        results = [function(*row) for row in rows]
        if not gradient:
            return [np.array(results)]
        return [np.array([v for v, _ in results]), *map(np.array, zip(*(g for _, g in results), strict=True))]

    return call


def jax_call(line: Samples, data: dict[str, Any], gradient: bool) -> Callable[[], list[Any]]:
    """The same in JAX, vmapped and jitted."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import erfc

    jax.config.update("jax_enable_x64", True)

    def option(spot: Any, strike: Any, rate: Any, vol: Any, time: Any) -> Any:
        spread = vol * jnp.sqrt(time)
        d1 = (jnp.log(spot / strike) + (rate + 0.5 * vol * vol) * time) / spread
        half = 0.5**0.5
        return 0.5 * spot * erfc(-d1 * half) - 0.5 * strike * jnp.exp(-rate * time) * erfc((spread - d1) * half)

    def rk4(y0: Any, par: Any, dt: Any) -> Any:
        def slope(y: Any) -> Any:
            return jnp.stack([par[0] * (y[1] - y[0]), y[0] * (par[1] - y[2]) - y[1], y[0] * y[1] - par[2] * y[2]])

        def step(y: Any, _: Any) -> Any:
            k1 = slope(y)
            k2 = slope(y + 0.5 * dt * k1)
            k3 = slope(y + 0.5 * dt * k2)
            k4 = slope(y + dt * k3)
            return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        y, _ = jax.lax.scan(step, y0, None, length=int(data["steps"]))
        return 0.5 * jnp.sum(y * y)

    if line.name == "option":
        f, axes, args = option, (0,) * 5, list(data.values())
    else:
        f, axes, args = rk4, (0, None, None), [data["y0"], data["par"], data["dt"]]
    numbers = tuple(range(len(line.wrt)))
    made = jax.jit(jax.vmap(jax.value_and_grad(f, numbers) if gradient else f, axes))
    placed = [jnp.asarray(a) for a in args]

    def call() -> list[Any]:
        return list(jax.tree.leaves(jax.block_until_ready(made(*placed))))

    return call


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns 0 when every result is right."""
    parser = argparse.ArgumentParser(prog="batch_samples", description="One batched call over single calls.")
    parser.add_argument("names", nargs="*", help="option, rk4; all by default")
    parser.add_argument("--quick", action="store_true", help="few samples: checks, not measurements")
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--jax", help=argparse.SUPPRESS)  # what the child process measures: name, gradient, samples
    options = parser.parse_args(arguments)
    if options.jax:
        name, gradient, n = options.jax.split(",")
        line = next(row for row in LINES if row.name == name)
        print(measure(jax_call(line, inputs(line, int(n)), gradient == "1"), quick=options.quick).least)
        return 0
    print(f"nanoseconds per sample\n{'kernel':<8} {'what':<9} {'samples':>8} {'single':>9} {'C loop':>8} {'JAX':>8} "
          f"{'1 thread':>9} {'2 threads':>9}  over C  over JAX  threads")
    right = True
    for line in LINES:
        if not options.names or line.name in options.names:
            for gradient in (False, True):
                right &= _print(line, gradient, options)
    return 0 if right else 1


def _print(line: Samples, gradient: bool, options: Any) -> bool:
    import irgrad

    n = 300 if options.quick else 1_000_000 if line.name == "option" else 4096
    data = inputs(line, n)
    kernel = irgrad.load(HERE / "kernels" / line.source).kernel(line.function, line.signature)
    count = min(n, 200)
    alone, native = single(line, kernel, data, gradient, count), c_loop(line, data, gradient)
    calls = [batched(line, kernel, data, gradient, threads) for threads in (1, 2)]
    wanted = [np.array(w) for w in alone()]
    others = [native] if native is not None else []
    if any(distance([g[:count] for g in call()], wanted) > TOLERANCE for call in (*calls, *others)):
        print(f"{line.name:<8} {'gradient' if gradient else 'value':<9} WRONG")
        return False
    quick = bool(options.quick)
    each = measure(alone, quick=quick).least / count
    c = measure(native, quick=quick).least / n if native else None
    one, two = (measure(call, quick=quick).least / n for call in calls)
    jax = None if options.no_jax else _jax(line, gradient, n, quick)
    best = min(one, two)
    cells = [f"{line.name:<8} {'gradient' if gradient else 'value':<9} {n:8}", _ns(each, 9), _ns(c, 8), _ns(jax, 8),
             _ns(one, 9), _ns(two, 9), _over(c, one, 7), _over(jax, best, 9), _over(one, two, 8)]
    print(" ".join(cells), flush=True)
    return True


def _jax(line: Samples, gradient: bool, n: int, quick: bool) -> float:
    command = [sys.executable, __file__, "--jax", f"{line.name},{int(gradient)},{n}", *(["--quick"] if quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return float(done.stdout.split()[-1]) / n


def _ns(seconds: float | None, width: int) -> str:
    return f"{'-':>{width}}" if seconds is None else f"{seconds * 1e9:{width}.1f}"


def _over(slow: float | None, fast: float, width: int) -> str:
    return f"{'-':>{width}}" if slow is None else f"{slow / fast:{width - 1}.2f}x"


if __name__ == "__main__":
    sys.exit(main())
