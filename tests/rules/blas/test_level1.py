"""Vector routines: increments of both signs, both conventions, both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, kernel

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
