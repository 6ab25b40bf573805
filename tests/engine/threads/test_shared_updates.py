"""Atomic updates of arrays in loops that threads share: each chunk adds to a copy, and these are put together."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.rules.errors import OneThread

N, M = 203, 37
RANDOM = np.random.default_rng(7)
X, Y = RANDOM.normal(size=N), RANDOM.normal(size=M)
K, PARTNER = RANDOM.integers(0, M, N), RANDOM.integers(0, M, N)
HEAD = "#include <math.h>\n#include <stdlib.h>\n"
SIGNATURE = "f64(f64[n] x, i64[n] k, i64[n] other, inout f64[m] y, i64 n, i64 m)"
START = "double f(const double *x, const long *k, const long *other, double *y, long n, long m) {\n"
LOOP = "#pragma omp parallel for SCHEDULE\nfor (long i = 0; i < n; i++) {\ndouble v = sin(x[i]) * x[i];\n"
UNSIZED = SIGNATURE.replace("f64[m]", "f64[w]").replace(", i64 m", "")

CASES = {
    "a histogram": LOOP + "#pragma omp atomic\ny[k[i]] += v;\n}\nreturn 0;}",
    "forces on both partners": LOOP + (
        "#pragma omp atomic\ny[k[i]] += v * x[i];\n#pragma omp atomic\ny[other[i]] -= v;\n}\n"
        "double s = 0; for (long j = 0; j < m; j++) s += y[j] * y[j]; return s;}"),
    "under a condition, with a sum": "double s = 0;\n" + LOOP + (
        "if (v > 0.2) {\n#pragma omp atomic\ny[(k[i] * 5 + 3) % m] += v;\n}\n#pragma omp atomic\ns += v * v;\n}\n"
        "return s;}"),
    "an inner loop": LOOP + (
        "for (int j = 0; j < 3; j++) {\n#pragma omp atomic\ny[(k[i] + j) % m] -= v * (j + 1);\n}\n}\nreturn 0;}"),
    "an array of the function": "double a[8] = {1, 2};\n" + LOOP + (
        "#pragma omp atomic\na[k[i] % 8] += v;\n}\nfor (long j = 0; j < m; j++) y[j] *= a[j % 8];\n"
        "return a[0] * a[1];}"),
    "an array of the heap": "double *a = malloc(m * sizeof(double));\nfor (long j = 0; j < m; j++) a[j] = y[j];\n" + (
        LOOP +
        "#pragma omp atomic\na[k[i]] += v;\n}\ndouble s = 0; for (long j = 0; j < m; j++) s += a[j] * a[j];\n"
        "free(a); return s;}"),
    "floats and counts": "float a[16] = {0}; int c[16] = {0};\n" + LOOP + (
        "#pragma omp atomic\na[k[i] & 15] += (float)v;\n#pragma omp atomic\nc[k[i] & 15]++;\n}\n"
        "double s = 0; for (int j = 0; j < 16; j++) if (c[j]) s += a[j] / c[j]; return s;}"),
    "an array of an iteration": LOOP + (
        "double part[4];\nfor (int j = 0; j < 4; j++) part[(k[i] + j) & 3] = v * (j + 1);\n"
        "for (int j = 0; j < 4; j++) {\n#pragma omp atomic\ny[(k[i] + j) % m] += part[(other[i] + j) & 3];\n}\n}\n"
        "return y[1] * y[2];}"),
    "steps of time": "for (int t = 0; t < 4; t++) {\n" + LOOP.replace("x[i])", "x[i] + t)") + (
        "#pragma omp atomic\ny[(k[i] + t) % m] += v;\n}\nfor (long j = 0; j < m; j++) y[j] = sin(y[j]);\n}\n"
        "return y[3];}"),
}  # fmt: skip


def _kernel(body: str, threads: int | None, schedule: str = "") -> Any:
    lib = ig.load(HEAD + START + body.replace("SCHEDULE", schedule), flags=["-fopenmp"])
    return lib.kernel("f", SIGNATURE, threads=threads)


def _derivatives(kernel: Any) -> list[Any]:
    values, pullback = ig.vjp(kernel, X, K, PARTNER, Y)
    bars = (1.3, np.cos(np.arange(M) + 0.5))
    x_bar, y_bar = pullback(bars)
    tangents = (np.sin(np.arange(N) + 1.0), np.cos(np.arange(M) * 3.0))
    none = np.zeros(N)
    _, pushed = ig.jvp(kernel, (X, K, PARTNER, Y), (tangents[0], none, none, tangents[1]))
    both = x_bar @ tangents[0] + y_bar @ tangents[1]
    assert bars[0] * pushed[0] + bars[1] @ pushed[1] == pytest.approx(both, rel=1e-5)
    return [*map(np.asarray, values), x_bar, y_bar, *map(np.asarray, pushed)]


@pytest.mark.parametrize("name", CASES)
def test_equal_bits_on_any_number_of_threads(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        kernels = {t: _kernel(CASES[name], t) for t in (1, 2, 4, 16)}
        found = {t: _derivatives(kernel) for t, kernel in kernels.items()}
    assert shared_loops(kernels[2].primal).shared
    plain = _derivatives(_kernel(CASES[name], None))
    single = name == "floats and counts"
    for results in found.values():
        for a, b, c in zip(results, found[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-5 if single else 1e-11, atol=1e-5 if single else 1e-12)


@pytest.mark.parametrize("name", ["forces on both partners", "an array of the heap"])
def test_gradient_against_differences(name: str) -> None:
    kernel = _kernel(CASES[name], 2, schedule="schedule(dynamic, 3)")
    x_bar = ig.grad(kernel, of="return", wrt="x")(X, K, PARTNER, Y)
    step = 1e-6
    for place in (0, 17, N - 1):
        moved = [kernel(X + sign * step * (np.arange(N) == place), K, PARTNER, Y)[0] for sign in (1, -1)]
        assert x_bar[place] == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-6, abs=1e-7)


def test_batches_jax_and_second_derivatives() -> None:
    body = CASES["forces on both partners"]
    shared, plain = _kernel(body, 4), _kernel(body, None)
    rows = np.stack([X, X * 0.5, X + 1.0])

    def of(kernel: Any) -> list[Any]:
        def value(x: Any) -> Any:
            return kernel(x, K, PARTNER, Y)[0]

        each = jax.jit(jax.vmap(jax.value_and_grad(value)))(rows)
        hvp = jax.jit(lambda x, t: jax.jvp(jax.grad(value), (x,), (t,))[1])(X, np.cos(X))
        return [*each, hvp, jax.jit(jax.grad(value))(X)]

    with jax.enable_x64(True):
        for a, b in zip(of(shared), of(plain), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("body", "signature"), [
    (LOOP + "#pragma omp atomic\ny[k[i]] += v;\nif (y[other[i]] > 1e9) y[0] += 1;\n}\nreturn 0;}", SIGNATURE),
    ("double s = 0;\n" + LOOP + (
        "double b;\n#pragma omp atomic capture\n{ b = y[k[i]]; y[k[i]] += v; }\nif (b > 1e9) y[0] += 1;\n}\n"
        "return 0;}"), SIGNATURE),
    (LOOP + "#pragma omp atomic\ny[k[i]] *= v;\n}\nreturn 0;}", SIGNATURE),
    (LOOP + "#pragma omp atomic\ny[k[i]] += v;\n}\nreturn 0;}", UNSIZED),
])  # fmt: skip
def test_what_no_copies_are_made_for_goes_in_the_order_of_iterations(body: str, signature: str) -> None:
    start = START if "i64 m" in signature else START.replace(", long m", "")
    text = HEAD + start + body.replace("SCHEDULE", "")
    lib = ig.load(text, flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        found = {t: _derivatives(lib.kernel("f", signature, threads=t)) for t in (1, 2, 4)}
    for results in found.values():
        for a, b, c in zip(results, found[1], _derivatives(lib.kernel("f", signature)), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)


def test_explain_tells_when_one_thread_runs_the_loop() -> None:
    found = shared_loops(_kernel(CASES["a histogram"], 2).primal)
    assert len(found.shared) == 1
    assert len(found.others) == 1
    assert found.others[0].endswith(
        ": only where copies of the arrays that it updates atomically, 16 of each, would take more than "
        "IRGRAD_MAX_COPIES")  # fmt: skip


_LARGE = """
import resource, sys, warnings
import numpy as np
import irgrad as ig
from irgrad.rules.errors import OneThread
warnings.simplefilter("error", OneThread)
lib = ig.load(sys.argv[1], flags=["-fopenmp"])
kernel = lib.kernel("f", sys.argv[2], threads=2)
gradient = ig.grad(kernel, of="return", wrt="x")
n, x = 200, np.linspace(0.1, 2.0, 200)
k, other = np.arange(n) * 7 % 37, np.arange(n) * 3 % 37
small = kernel(x, k, other, np.zeros(64))[0], gradient(x, k, other, np.zeros(64))
for m, room in ((9_000_000, 0), (6_000_000, 600 << 20)):
    y = np.zeros(m)
    if room:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    np.testing.assert_allclose(kernel(x, k, other, y)[0], small[0], rtol=1e-12)
    try:
        np.testing.assert_allclose(gradient(x, k, other, y), small[1], rtol=1e-12)
    except MemoryError:
        assert room
        print("no memory")
"""


def test_one_thread_where_copies_are_too_large_or_memory_is_out() -> None:
    """Copies of 9 million numbers pass the limit; those of 6 million do not, but the process may not have as much."""
    text = HEAD + START + CASES["forces on both partners"].replace("SCHEDULE", "")
    made = subprocess.run([sys.executable, "-c", _LARGE, text, SIGNATURE], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "no memory\n"
