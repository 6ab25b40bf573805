"""Programs that call BLAS and LAPACK: gradient over value, with a check against formulas in NumPy.

    python -m benchmarks.blas

A Gaussian log-likelihood (dpotrf, dtrsv, ddot) by its three parameters, and a network of three products (dgemm) by its
weights. The library is SciPy's OpenBLAS on one thread; both sides are called from Python, as a user would.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KERNELS = Path(__file__).parent / "kernels"
WRONG = 1e-10


def library() -> str:
    """The BLAS and LAPACK of SciPy."""
    import scipy

    return str(next(Path(scipy.__file__).parent.parent.glob("scipy.libs/libscipy_openblas*.so")))


def gaussian(n: int) -> tuple[Any, tuple[int, ...], tuple[Any, ...], list[Any]]:
    """Kernel, active arguments, arguments, and the gradient (Rasmussen and Williams 2006, equation 5.9)."""
    import irgrad

    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, n))
    y, p = np.sin(x) + 0.1 * rng.normal(size=n), np.array([0.0, -0.3, -1.0])
    lib = irgrad.load(KERNELS / "gaussian.c", link=[library()])
    squares = (x[:, None] - x[None]) ** 2
    smooth, noise = np.exp(2 * p[0] - squares / (2 * np.exp(2 * p[1]))), np.exp(2 * p[2]) * np.eye(n)
    inverse = np.linalg.inv(smooth + noise)
    weights = np.outer(inverse @ y, inverse @ y) - inverse
    parts = (smooth, smooth * squares / (2 * np.exp(2 * p[1])), noise)
    return (lib.kernel("gaussian", "f64(i32 n, f64[3] p, f64[n] x, f64[n] y)"), (0,), (p, x, y),
            [np.array([np.sum(weights * part) for part in parts])])  # fmt: skip


def network(m: int, h: int) -> tuple[Any, tuple[int, ...], tuple[Any, ...], list[Any]]:
    """m samples, h inputs, two layers of h, ten outputs."""
    import irgrad

    rng = np.random.default_rng(1)
    w1, w2, w3 = (rng.normal(size=(k, h)) / np.sqrt(h) for k in (h, h, 10))
    x, y = rng.normal(size=(m, h)), rng.normal(size=(m, 10))
    lib = irgrad.load(KERNELS / "mlp_blas.c", link=[library()])
    kernel = lib.kernel("mlp", "f64(i32 m, i32 in, i32 h, i32 out, f64[h,in] w1, f64[h,h] w2, f64[out,h] w3, "
                               "f64[m,in] x, f64[m,out] y)")  # fmt: skip
    a = np.tanh(x @ w1.T)
    b = np.tanh(a @ w2.T)
    g = 2 * (b @ w3.T - y) / m
    gb = (g @ w3) * (1 - b * b)
    ga = (gb @ w2) * (1 - a * a)
    return kernel, (0, 1, 2), (w1, w2, w3, x, y), [ga.T @ x, gb.T @ a, g.T @ b]


CASES: dict[str, Callable[[], tuple[Any, tuple[int, ...], tuple[Any, ...], list[Any]]]] = {
    "gaussian-200": lambda: gaussian(200),
    "gaussian-500": lambda: gaussian(500),
    "gaussian-1000": lambda: gaussian(1000),
    "mlp-256x128": lambda: network(256, 128),
    "mlp-512x256": lambda: network(512, 256),
}


def best(call: Callable[..., Any], *args: Any) -> float:
    """The least of eleven times in seconds."""
    times = []
    for _ in range(11):
        start = time.perf_counter()
        call(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def error(found: Any, expected: list[Any]) -> float:
    """The largest error of a gradient over the largest element of it."""
    listed = found if isinstance(found, tuple) else (found,)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(listed, expected, strict=True))


def main() -> int:
    """Print one row for each case; 1 when a gradient is wrong."""
    from irgrad.engine import value_and_grad

    wrong = 0
    print(f"{'case':16}{'value':>12}{'gradient':>12}{'ratio':>8}{'error':>10}")
    for name, make in CASES.items():
        kernel, argnums, args, expected = make()
        both = value_and_grad(kernel, argnums=argnums)
        off = error(both(*args)[1], expected)
        wrong += not off < WRONG
        first, second = best(kernel, *args), best(both, *args)
        shown = f"{second / first:8.2f}" if off < WRONG else "   WRONG"
        print(f"{name:16}{1e3 * first:9.2f} ms{1e3 * second:9.2f} ms{shown}{off:10.1e}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    raise SystemExit(main())
