"""Python functions that Numba compiles: derivatives against those of C and differences, exceptions, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numba
import numpy as np
import pytest

import irgrad
from irgrad import engine

C = r"""
#include <math.h>
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = pos[3*i+k] - pos[3*j+k]; r += d * d; }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
"""


def energy(pos: Any, mass: Any) -> Any:
    e = 0.0
    for i in range(pos.shape[0]):
        for j in range(i):
            r = 0.01
            for k in range(3):
                r += (pos[i, k] - pos[j, k]) ** 2
            e -= mass[i] * mass[j] / np.sqrt(r)
    return e


def rk4(y: Any, h: Any, steps: Any) -> None:
    k, t = np.empty((4, 3)), np.empty(3)
    for _ in range(steps):
        for m in range(4):
            w = 0.0 if m == 0 else h if m == 3 else h / 2
            t[:] = y + w * k[m - 1] if m > 0 else y
            k[m, 0] = 10 * (t[1] - t[0])
            k[m, 1] = t[0] * (28 - t[2]) - t[1]
            k[m, 2] = t[0] * t[1] - 8 / 3 * t[2]
        y += h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])


def diffuse(u: Any, v: Any) -> None:
    v[0], v[-1] = u[0], u[-1]
    for i in range(1, u.shape[0] - 1):
        v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * math.exp(-u[i])


def quadrature(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(64):
        total += math.sin(a * (i + 0.5) * (b - a) / 64) * (b - a) / 64
    return total


def payoff(paths: Any, strike: Any) -> Any:
    return np.maximum(paths[:, -1] - strike, 0.0).mean() + np.sum(np.exp(paths)) / paths.size


def tridiagonal(a: Any, b: Any, c: Any, d: Any, x: Any) -> None:
    n = len(b)
    p, q = np.zeros(n), np.zeros(n)
    for i in range(n):
        m = b[i] - (a[i] * p[i - 1] if i > 0 else 0.0)
        p[i] = c[i] / m
        q[i] = (d[i] - (a[i] * q[i - 1] if i > 0 else 0.0)) / m
    for i in range(n - 1, -1, -1):
        x[i] = q[i] - (p[i] * x[i + 1] if i < n - 1 else 0.0)


@numba.njit
def _square(x: Any) -> Any:
    return x * x, math.tanh(x)


def nested(x: Any) -> Any:
    s = 0.0
    for v in x:
        a, b = _square(v)
        s += a * b
    return s


RNG = np.random.default_rng(5)
PROGRAMS: dict[Callable[..., Any], tuple[str, tuple[Any, ...]]] = {
    energy: ("f64(f64[n,3] pos, f64[n] mass)", (RNG.normal(size=(6, 3)), RNG.uniform(1, 2, 6))),
    rk4: ("void(inout f64[3] y, f64 h, i64 steps)", (np.array([1.0, 2, 20]), 0.01, 12)),
    diffuse: ("void(f64[n] u, out f64[n] v)", (RNG.normal(size=9),)),
    quadrature: ("f64(f64 a, f64 b)", (0.3, 1.7)),
    payoff: ("f64(f64[n,m] paths, f64 strike)", (RNG.uniform(1, 2, (5, 4)), 1.3)),
    tridiagonal: ("void(f64[n] a, f64[n] b, f64[n] c, f64[n] d, out f64[n] x)",
                  (RNG.normal(size=7), RNG.uniform(4, 5, 7), RNG.normal(size=7), RNG.normal(size=7))),
    nested: ("f64(f64[n] x)", (RNG.normal(size=5),)),
}  # fmt: skip


def _by_python(function: Callable[..., Any], signature: str, arguments: tuple[Any, ...]) -> Any:
    """What the function gives as Python runs it: the written arrays, or the value."""
    given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    written = [np.zeros_like(given[0])] if " out " in signature or ", out" in signature else []
    value = function(*given, *written)
    return value if value is not None else (written or given)[0]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives(function: Callable[..., Any]) -> None:
    signature, arguments = PROGRAMS[function]
    kernel = irgrad.from_numba(function, signature)
    value = kernel(*arguments)
    np.testing.assert_allclose(value, _by_python(function, signature, arguments), rtol=1e-13)
    assert engine.check(kernel, *arguments).ok
    with jax.enable_x64(True):
        by_jax = jax.jit(jax.jacrev(lambda x: kernel(x, *arguments[1:])))(arguments[0])
    np.testing.assert_allclose(by_jax, engine.jacrev(kernel, argnums=0)(*arguments), rtol=1e-12, atol=1e-14)


def test_gradients_are_those_of_c() -> None:
    signature, arguments = PROGRAMS[energy]
    by_c = irgrad.load(C).kernel("energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)")
    by_numba = irgrad.jit(signature)(energy)
    for mine, his in zip(engine.grad(by_numba, argnums=(0, 1))(*arguments),
                         engine.grad(by_c, argnums=(0, 1))(*arguments), strict=True):  # fmt: skip
        np.testing.assert_allclose(mine, his, rtol=1e-13, atol=1e-13)
    hessians = [engine.hessian(kernel, wrt="mass")(*arguments) for kernel in (by_numba, by_c)]
    np.testing.assert_allclose(hessians[0], hessians[1], rtol=1e-12, atol=1e-13)


def test_exceptions_have_the_message_of_the_function() -> None:
    @irgrad.jit("f64(f64[n] x)")
    def root(x: Any) -> Any:
        s = 0.0
        for v in x:
            if v < 0:
                raise ValueError("a negative number under the root")
            s += math.sqrt(v)
        return s

    assert root(np.array([4.0, 9])) == 5
    for call in (root, engine.grad(root)):
        with pytest.raises(irgrad.KernelError, match="ValueError: a negative number under the root"):
            call(np.array([4.0, -9]))
    np.testing.assert_allclose(engine.grad(root)(np.array([4.0, 16])), [0.25, 0.125])


def test_options_of_the_decorator_hold_and_loops_run_on_one_thread() -> None:
    @numba.njit(error_model="numpy", parallel=True)
    def inverse(x: Any) -> Any:
        s = 0.0
        for i in numba.prange(x.shape[0]):
            s += 1 / x[i]
        return s

    kernel = irgrad.from_numba(inverse, "f64(f64[n] x)")
    assert kernel(np.array([2.0, 0])) == np.inf
    np.testing.assert_allclose(engine.grad(kernel)(np.array([2.0, 4])), [-0.25, -0.0625])


def test_functions_that_are_called_keep_their_own_code() -> None:
    """What is compiled for irgrad is not optimised, and stays out of Numba's functions and its cache."""

    @numba.njit
    def inner(x: Any) -> Any:
        return x * x

    def outer(x: Any) -> Any:
        return inner(x) + _square(x)[0]

    inner(2)
    before = list(inner.overloads), list(_square.overloads)
    kernel = irgrad.from_numba(outer, "f64(f64 x)")
    assert engine.grad(kernel)(3.0) == 12
    assert (list(inner.overloads), list(_square.overloads)) == before and inner(2) == 4 and inner(1.5) == 2.25


def test_single_precision() -> None:
    kernel = irgrad.from_numba(nested, "f64(f32[n] x)")
    x = np.array([0.5, -1.5], np.float32)
    assert engine.grad(kernel)(x).dtype == np.float32
    exact = 2 * x * np.tanh(x) + x * x / np.cosh(x) ** 2
    np.testing.assert_allclose(engine.grad(kernel)(x), exact, rtol=1e-5)


def _imports(x: Any) -> Any:
    import heapq

    return heapq.heappop([x])


def _by_key(x: Any) -> Any:
    found = {0: 0.0}
    for i in range(len(x)):
        found[i % 3] = x[i]
    return found[0]


@pytest.mark.parametrize(("function", "signature", "error", "message"), [
    (_imports, "f64(f64 x)", irgrad.CompileError, "does not compile"),
    (_by_key, "f64(f64[n] x)", irgrad.CompileError, "(?s)keeps a typed list or a dictionary.*a list"),
    (lambda x: x + "a", "f64(f64 x)", irgrad.CompileError, r"(?s)numba says:.*No implementation"),
    (lambda x, y: x, "f64(f64 x)", irgrad.CompileError, "1 argument types given, but function takes 2"),
    (lambda x: x, "void(f64 x)", irgrad.SignatureError, "the function returns `float64`"),
    (lambda x: 2 * x, "f64(f64[n] x)", irgrad.SignatureError, r"(?s)the function returns `array.*out f64\[n\] y"),
    (lambda x: x, "f64(f64[] x)", irgrad.SignatureError, "a pointer to one number"),
    (lambda x, n: x[0], "f64(f64[2*n] x, i64 n)", irgrad.SignatureError, r"the extent `2\*n` is a product"),
    (lambda x: x, "bf16(bf16 x)", irgrad.SignatureError, "is no type of Numba"),
])  # fmt: skip
def test_refusals(function: Any, signature: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        irgrad.from_numba(function, signature)
