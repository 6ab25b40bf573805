"""Functions of Python and of ctypes behind names that C declares."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.rules import layer

SOURCE = """
double {name}(double x, long k);
void {name}_all(const double *x, double *y, long n);
double cost(const double *x, double *y, long n) {{
    {name}_all(x, y, n);
    double s = 0;
    for (long i = 0; i < n; i++) s += y[i] * {name}(x[i], 2);
    return s;
}}
"""
SIGNATURE = "f64(f64[n] x, out f64[n] y, i64 n)"
Array = np.ndarray[Any, Any]


def _made(name: str) -> irgrad.Kernel:
    @irgrad.primal(name, "f64(f64 x, i64 k)")
    def _(x: float, k: int) -> float:
        if x == 13:
            raise ValueError("thirteen")
        return x**k

    @irgrad.primal(f"{name}_all", "void(f64[n] x, out f64[n] y, i64 n)")
    def _(x: Array, y: Array, n: int) -> None:  # type: ignore[no-redef]
        assert n == len(x) and not x.flags.writeable
        y[:] = np.sin(x)

    kernel: irgrad.Kernel = irgrad.load(SOURCE.format(name=name)).kernel("cost", SIGNATURE)
    return kernel


@pytest.fixture
def rules() -> Iterator[None]:
    with layer():
        yield


def test_values_derivatives_and_exceptions(rules: None) -> None:
    kernel = _made("primal_a")
    x = np.linspace(0.5, 2, 7)
    value, y = kernel(x)
    assert np.array_equal(y, np.sin(x)) and value == pytest.approx((np.sin(x) * x**2).sum())

    @irgrad.rule("primal_a")
    def _(x, k):  # type: ignore[no-untyped-def]
        return k * x

    prototype = irgrad.rules.extern("primal_a_all", "void(f64[n] x, out f64[n] y, i64 n)")

    @irgrad.rule(prototype, mode="reverse", host=True)
    def _(ctx, x, y, n):  # type: ignore[no-untyped-def]
        x.d += np.cos(x.value) * y.d
        y.d[:] = 0

    gradient = irgrad.grad(kernel, of="return")(x)
    assert gradient == pytest.approx(np.cos(x) * x**2 + np.sin(x) * 2 * x)
    with pytest.raises(ValueError, match="thirteen"):
        kernel(np.array([1.0, 13.0, 2.0]))
    assert kernel(x)[0] == value


def test_a_function_of_ctypes_and_one_of_a_library() -> None:
    double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    irgrad.primal("primal_b", double(lambda x: 3 * x))
    irgrad.primal("primal_c", ctypes.CDLL("libm.so.6").sin)
    lib = irgrad.load("double primal_b(double); double primal_c(double);\n"
                      "double f(double x) { return primal_b(x) + primal_c(x); }\n")  # fmt: skip
    assert lib.kernel("f")(0.5) == 1.5 + np.sin(0.5)
    irgrad.primal("primal_b", double(lambda x: 4 * x))  # kernels made from now on have this one
    again = irgrad.load("double primal_b(double);\ndouble g(double x) { return primal_b(x); }\n").kernel("g")
    assert again(0.5) == 2.0 and lib.kernel("f")(0.5) in (1.5 + np.sin(0.5), 2 + np.sin(0.5))


def test_what_is_refused() -> None:
    with pytest.raises(irgrad.LoadError, match="`sin` has a body already"):
        irgrad.primal("sin", "f64(f64 x)")
    with pytest.raises(irgrad.SignatureError, match="a function is no body of `primal_d`"):
        irgrad.primal("primal_d", lambda x: x)
    with pytest.raises(irgrad.SignatureError, match="`f16` is not handed to Python"):
        irgrad.primal("primal_d", "f64(f16 x)")

    @irgrad.primal("primal_e", "void(out f64[] y)")
    def _(y: Array) -> float:
        return 1.0

    lib = irgrad.load("void primal_e(double *y);\ndouble f(double x) { double y = x; primal_e(&y); return y; }\n")
    with pytest.raises(irgrad.SignatureError, match="a void function returns a float"):
        lib.kernel("f")(1.0)


def test_xla_is_told_that_exceptions_cannot_leave() -> None:
    import jax
    kernel = _made("primal_f")
    jax.config.update("jax_enable_x64", True)
    with pytest.raises(irgrad.Unsupported, match="a function of Python in"):
        jax.jit(kernel)(np.linspace(0.5, 2, 7))
    with pytest.raises(irgrad.Unsupported, match="a function of Python in a batch"):
        irgrad.batch(kernel)(np.ones((3, 7)))
