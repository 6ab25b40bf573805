"""Twenty programs of Numba users besides those of test_numba_functions: what Numba leaves to its own libraries too."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba_arrays import ARRAYS
from numba_idioms import LINALG
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.loaders import numba_runtime
from irgrad.interop.loaders.numba_runtime import complete

RNG = np.random.default_rng(5)
X = RNG.normal(size=6)


def spline(x: Any, y: Any, at: Any) -> Any:
    n = x.size
    h = x[1:] - x[:-1]
    m = np.zeros(n)
    c, d = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        b = 2 * (h[i - 1] + h[i]) - h[i - 1] * c[i - 1]
        c[i] = h[i] / b
        d[i] = (6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1]) - h[i - 1] * d[i - 1]) / b
    for i in range(n - 2, 0, -1):
        m[i] = d[i] - c[i] * m[i + 1]
    k = min(max(np.searchsorted(x, at) - 1, 0), n - 2)
    a, b = (x[k + 1] - at) / h[k], (at - x[k]) / h[k]
    return a * y[k] + b * y[k + 1] + ((a**3 - a) * m[k] + (b**3 - b) * m[k + 1]) * h[k] ** 2 / 6


def monte_carlo(z: Any, s: Any, vol: Any, k: Any) -> Any:
    total = 0.0
    for path in range(z.shape[0]):
        x = s
        for step in range(z.shape[1]):
            x *= math.exp(vol * z[path, step] - 0.5 * vol**2)
        total += max(x - k, 0.0)
    return total / z.shape[0]


def state(v: Any, t: Any, a: Any, b: Any) -> Any:
    if v <= b:
        raise ValueError("volume below the excluded one")
    return t / (v - b) - a / v**2


def matmul(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = np.sum(a[i] * b[:, j])


@numba.njit
def step(u: Any, dt: Any) -> Any:
    return u[0] + dt * u[1], u[1] - dt * math.sin(u[0])


def pendulum(q: Any, p: Any, steps: Any) -> Any:
    u = (q, p)
    for _ in range(steps):
        u = step(u, 0.05)
    return u[0] * u[1]


def broadcasting(x: Any, w: Any) -> Any:
    y = x[:, np.newaxis] * w
    return (y**2).sum() + np.tanh(y).mean()


def newton(a: Any) -> Any:
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


@numba.njit
def recursive(x: Any, n: Any) -> Any:
    if n == 0:
        return 1.0
    return x * recursive(x, n - 1) / n + 1


def series(x: Any, n: Any) -> Any:
    return recursive(x, n)


def complexes(a: Any, b: Any) -> Any:
    z = complex(a, b)
    z = z * z + 1 / z
    return z.real**2 + abs(z)


def histogram(x: Any, w: Any) -> Any:
    bins = np.zeros(4)
    for i in range(x.size):
        bins[int(x[i]) % 4] += w[i] ** 2
    return np.sum(np.log1p(bins))


def parallel(x: Any) -> Any:
    s = 0.0
    for i in numba.prange(x.size):
        s += math.sqrt(1 + x[i] ** 2)
    return s


def wave(u: Any, steps: Any) -> None:
    old = u.copy()
    for _ in range(steps):
        new = u.copy()
        for i in range(1, u.size - 1):
            new[i] = 2 * u[i] - old[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1])
        old[:] = u
        u[:] = new


def special(x: Any) -> Any:
    near = math.erf(x) + math.atan2(x, 2.0) + math.hypot(x, 1.0)
    return near + math.gamma(x) + math.lgamma(x) + math.expm1(x) + x**0.3


def matprod(a: Any, b: Any) -> Any:
    return np.sum((a @ b) ** 2)


def sorted_(x: Any) -> Any:
    y = np.sort(x)
    return y[0] * y[-1]


PROGRAMS: list[tuple[Callable[..., Any], str, tuple[Any, ...]]] = [
    (monte_carlo, "f64(f64[n,m] z, f64 s, f64 vol, f64 k)", (RNG.normal(size=(5, 3)), 1.0, 0.3, 1.02)),
    (state, "f64(f64 v, f64 t, f64 a, f64 b)", (2.0, 1.4, 0.3, 0.2)),
    (newton, "f64(f64 a)", (2.7,)),
    (parallel, "f64(f64[n] x)", (X,)),
    (special, "f64(f64 x)", (1.3,)),
    (pendulum, "f64(f64 q, f64 p, i64 steps)", (1.1, 0.3, 7)),
    (series, "f64(f64 x, i64 n)", (0.7, 6)),
    (histogram, "f64(f64[n] x, f64[n] w)", (RNG.uniform(0, 9, 6), X)),
    (complexes, "f64(f64 a, f64 b)", (0.7, 0.4)),
    (matmul, "void(f64[n,k] a, f64[k,m] b, out f64[n,m] c)", (RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)))),
    (matprod, "f64(f64[n,k] a, f64[k,m] b)", (RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2)))),
    (broadcasting, "f64(f64[n] x, f64[m] w)", (RNG.normal(size=3), RNG.normal(size=4))),
    (spline, "f64(f64[n] x, f64[n] y, f64 at)", (np.linspace(0, 4, 6), X, 2.3)),
    (wave, "void(inout f64[n] u, i64 steps)", (RNG.normal(size=8), 4)),
    (sorted_, "f64(f64[n] x)", (X,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "signature", "args"), fast(3, PROGRAMS, most=10))
def test_programs(function: Callable[..., Any], signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.from_numba(function, signature)
    value = kernel(*args)
    if ", out " in signature:
        expected = args[0] @ args[1]
    elif "inout " in signature:
        expected = args[0].copy()
        function(expected, *args[1:])
    else:
        expected = function(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert engine.check(kernel, *args).ok


@pytest.mark.parametrize(("function", "signature", "args"), [*fast(2, LINALG), *fast(1, ARRAYS, most=40)])
def test_what_numpy_has(function: Callable[..., Any], signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.from_numba(function, signature)
    np.testing.assert_allclose(kernel(*args), function(*args), rtol=1e-11)
    assert engine.check(kernel, *args).ok


@pytest.mark.filterwarnings("ignore:OneLane")
def test_linear_algebra_in_single_precision_and_twice() -> None:
    def solved(a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b).sum()

    a, b = RNG.normal(size=(3, 3)) + 3 * np.eye(3), RNG.normal(size=3)
    single = irgrad.from_numba(solved, "f32(f32[n,n] a, f32[n] b)")
    g = engine.grad(single, wrt="b")(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(g, np.linalg.solve(a.T, np.ones(3)), rtol=1e-4)
    kernel = irgrad.from_numba(solved, "f64(f64[n,n] a, f64[n] b)")
    x, inverse = np.linalg.solve(a, b), np.linalg.inv(a)
    np.testing.assert_allclose(kernel(a, b), x.sum(), rtol=1e-13)
    y = inverse.T @ np.ones(3)  # the gradient is -y x^T, x = A^-1 b
    exact = np.einsum("i,jk,l->ijkl", y, inverse, x)
    hessian = engine.hessian(kernel, wrt="a")(a, b)
    np.testing.assert_allclose(hessian, exact + exact.transpose(2, 3, 0, 1), rtol=1e-9, atol=1e-11)
    with pytest.raises(irgrad.KernelError, match="Matrix is singular"):
        kernel(np.zeros((3, 3)), b)


def test_shapes_without_a_copy() -> None:
    """Strides of another shape, against NumPy's, where it does not copy."""
    library = irgrad.load(Path(numba_runtime.__file__).with_suffix(".c"), flags=["-w"])
    name = "numba_attempt_nocopy_reshape"
    arrays = "i64 r, i64[r] dims, i64[r] strides, i64 q, i64[q] wanted, out i64[q] made"
    attempt = library.kernel(name, f"i32({arrays}, i64 size, i32 columns)")
    shapes = [(24,), (2, 12), (2, 3, 4), (4, 6), (1, 24), (2, 1, 12), (3, 1, 8, 1), (2, 2, 2, 3)]
    views: list[Callable[[Any], Any]] = [
        lambda a: a, np.asfortranarray, lambda a: a.T, lambda a: a[::-1], lambda a: np.moveaxis(a, 0, -1),
        lambda a: np.repeat(a, 2, -1)[..., ::2],
    ]  # fmt: skip
    for shape, wanted, view, order in itertools.product(shapes, shapes, views, (0, 1)):
        array = view(np.arange(24.0).reshape(shape))
        fine, strides = attempt(np.array(array.shape), np.array(array.strides), np.array(wanted), 8, order)
        expected = array.reshape(wanted, order="CF"[order])
        assert bool(fine) == np.shares_memory(expected, array)
        if fine:
            np.testing.assert_array_equal(np.lib.stride_tricks.as_strided(array, wanted, strides), expected)


def test_modules_that_need_nothing_stay() -> None:
    text = "declare double @sin(double)\n"
    assert complete(text) is text


def test_recursive_calls_are_calls_by_name() -> None:
    text = """define i32 @_Zr(double %x) {
  %.2 = load ptr, ptr @".numba.unresolved$_Zr", align 8
  %.3 = load ptr, ptr @".numba.unresolved$_Zother", align 8
  ret i32 0
}
"""
    made = complete(text)
    assert "%.2 = bitcast ptr @_Zr to ptr" in made and "%.3 = load ptr" in made
