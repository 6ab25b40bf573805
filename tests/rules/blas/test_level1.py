"""Vector routines: increments of both signs, both conventions, both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, kernel, library

import irgrad
from irgrad.engine import vjp
from irgrad.rules.blas.spelling import spelled

ROUTINES = ("scal", "axpy", "dot", "nrm2", "asum", "copy", "swap", "rot")


def _case(spelling: Any, rng: np.random.Generator, n: int, incx: int, incy: int) -> Any:
    made = {"n": n, "incx": incx, "incy": incy, "alpha": 0.7, "c": 0.6, "s": -0.9}
    made |= {name: rng.normal(size=max(1, 1 + (n - 1) * abs(inc))) for name, inc in (("x", incx), ("y", incy))}
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("symbol", ["cblas_d{}", "d{}_"])
def test_increments(symbol: str, routine: str) -> None:
    spelling = spelled(symbol.format(routine))
    assert spelling is not None
    rng = np.random.default_rng(1)
    for incx, incy in ((1, 1), (2, 1), (-1, 3), (2, -2), (-3, -1)):
        for n in (3, 1, 0):
            check(spelling, _case(spelling, rng, n, incx, incy), rng)


@pytest.mark.parametrize("routine", ROUTINES)
def test_single_precision(routine: str) -> None:
    spelling = spelled(f"cblas_s{routine}" if ROUTINES.index(routine) % 2 else f"s{routine}_")
    assert spelling is not None
    rng = np.random.default_rng(2)
    check_single(spelling, _case(spelling, rng, 4, 2, -1), rng)


def test_a_norm_at_zero_has_a_finite_derivative() -> None:
    for routine in ("cblas_dnrm2", "cblas_dasum"):
        spelling = spelled(routine)
        assert spelling is not None
        _, pull = vjp(kernel(spelling), 3, np.zeros(3), 1)
        assert [list(g) for g in pull(1.0) if g is not None] == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("source", [
    "unsigned long cblas_idamax(int, const double *, int);\n"
    "double f(const double *x, long n) { long k = cblas_idamax((int)n, x, 1); return x[k] * x[k] * x[0]; }",
    "int idamax_(int *, const double *, int *);\n"
    "double f(const double *x, long n) { int m = (int)n, one = 1, k = idamax_(&m, x, &one) - 1; "
    "return x[k] * x[k] * x[0]; }",
])  # fmt: skip
def test_the_place_of_the_largest_element(source: str) -> None:
    """It is an integer: the derivative goes through what is read there."""
    loss = irgrad.load(source, link=[library()]).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.5, 0.3, -1.2, 0.7])
    np.testing.assert_allclose(irgrad.grad(loss)(x), [1.44, 0, -1.2, 0])
    np.testing.assert_allclose(irgrad.jvp(loss, (x,), (x,))[1], 3 * 0.72)
