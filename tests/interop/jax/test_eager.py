"""Calls outside of every transformation: compiled once for each kind of arguments, and as right as any other."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.interop.jax.eager import compiled_call
from irgrad.rules import layer, rule

jax.config.update("jax_enable_x64", True)

calls = import_module("irgrad.interop.jax.call")  # the package has a function of that name
LIBRARY = irgrad.load("""
#include <math.h>
double soft(double x) { return log1p(exp(x)); }
double outer(double x) { return 2 * soft(x); }
void power(const double *x, double a, int p, double *y, long n) {
  for (long i = 0; i < n; i++) y[i] = a * pow(x[i], p);
}
void series(double x, double *y, int terms) { y[0] = x; for (int i = 1; i < terms; i++) y[i] = y[i - 1] * x / (i + 1); }
""")
POWER = LIBRARY.kernel("power", "void(f64[n] x, f64 a, i32 p, out f64[n] y, i64 n)")
SERIES = LIBRARY.kernel("series", "void(f64 x, out f64[terms] y, i32 terms)")
X = jnp.linspace(0.5, 2.0, 4)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels whose arguments were checked in Python, one for each time."""
    seen: list[str] = []
    original = calls._check_x64
    monkeypatch.setattr(calls, "_check_x64", lambda kernel: (seen.append(kernel.name), original(kernel))[1])
    return seen


def test_the_second_call_of_a_kind_runs_no_checks(traces: list[str]) -> None:
    for a in (2.0, 3.0, jnp.float64(3.0), jnp.float64(0.5)):
        for p in (2, 3):
            np.testing.assert_allclose(POWER(X, a, p), a * X**p, rtol=1e-14)
    assert len(traces) == 4  # a Python number or an array; two constants
    np.testing.assert_allclose(POWER(X[:2], 1.0, 2), X[:2] ** 2)
    np.testing.assert_allclose(POWER(X, 1, 2), X**2)
    assert len(traces) == 6  # another shape; an integer where a float is wanted


def test_numbers_that_determine_shapes() -> None:
    x = jnp.float64(0.5)
    assert SERIES(x, 3).shape == (3,) and SERIES(x, 5).shape == (5,)
    assert SERIES(x, jnp.int32(4)).shape == (4,)


def test_traced_calls_go_the_other_way() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(compiled_call(POWER, [X, 2.0, 3], calls._traced))
        return x

    for transformed in (jax.jit(f), jax.vmap(f), jax.grad(lambda x: f(x).sum())):
        transformed(X)
    assert seen == [None] * 3
    assert compiled_call(POWER, [X, 2.0, 3], calls._traced) is not None
    assert compiled_call(POWER, [np.ones(4), 2.0, 3], calls._traced) is None


def test_rules_that_came_later_are_seen() -> None:
    outer = LIBRARY.kernel("outer")
    x = jnp.float64(0.3)
    wanted = 2 * np.log1p(np.exp(0.3))
    assert outer(x) == pytest.approx(wanted, rel=1e-15)
    with layer():

        @rule("soft")
        def _(x: Any) -> Any:
            return 10 * x

        assert jax.grad(outer)(x) == pytest.approx(6.0, rel=1e-14)
        assert outer(x) == pytest.approx(wanted, rel=1e-15)
    assert jax.grad(outer)(x) == pytest.approx(2 / (1 + np.exp(-0.3)), rel=1e-14)


def test_errors_are_the_same_each_time() -> None:
    for _ in range(2):
        with pytest.raises(irgrad.DTypeError, match="`x` has dtype float32"):
            POWER(X.astype(jnp.float32), 2.0, 3)
        with pytest.raises(irgrad.DTypeError, match="`p`"):
            POWER(X, 2.0, 2.5)
        with pytest.raises(irgrad.ShapeError):
            POWER(jnp.ones((2, 2)), 2.0, 3)
        with pytest.raises(irgrad.IRGradError, match="`x`"):
            POWER(1.0, jnp.float64(2.0), 3)


def test_without_x64_the_error_comes_again() -> None:
    POWER(X, 2.0, 3)
    with jax.enable_x64(False), pytest.raises(irgrad.DTypeError, match="64-bit"):
        POWER(X, 2.0, 3)


FIRST_TRACED = """
import jax, irgrad
jax.config.update("jax_enable_x64", True)
kernel = irgrad.load("double f(double x) { return x * x; }").kernel("f")
x = jax.numpy.float64(3.0)
assert jax.jit(kernel)(x) == 9.0
from irgrad.interop.jax import eager
for _ in range(3):
    assert kernel(x) == 9.0
print(eager._jitted.cache_info().hits)
"""


@pytest.mark.long
def test_the_first_call_may_be_a_traced_one() -> None:
    """The module is imported then, while JAX's arrays are tracers."""
    command = [sys.executable, "-c", FIRST_TRACED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "2", done.stderr


def test_the_kernel_is_what_jax_names() -> None:
    x = jnp.array([1.0, 2.0])
    for compiled in (compiled_call(POWER, (x, 2.0, 3), calls._traced), jax.jit(POWER, static_argnums=2)):
        assert compiled is not None
        text = compiled.lower(x, 2.0, 3).as_text(debug_info=True)
        assert "module @jit_power" in text and 'loc("x")' in text and 'loc("a")' in text
