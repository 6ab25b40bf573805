"""Matrix-vector routines: all flags, both orders, increments of both signs, both conventions and precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases, flag_values

from irgrad.rules.blas.spelling import spelled

ROUTINES = ("ger", "syr", "syr2", "gemv", "symv", "trmv", "trsv")


def _case(
    spelling: Any, flags: dict[str, int], rng: np.random.Generator, m: int, n: int, incx: int, incy: int, beta: float
) -> Any:
    row = flags.get("order") == 101
    transposed = flags.get("trans") == flag_values("trans", spelling.c)[1]
    square = spelling.routine not in ("ger", "gemv")
    rows = n if square else m
    made: dict[str, Any] = {"m": m, "n": n, "incx": incx, "incy": incy, "alpha": 0.7, "beta": beta, **flags}
    outer, inner = (rows, n) if row else (n, rows)
    made["lda"] = max(1, inner) + 1
    a = 0.4 * rng.normal(size=(max(1, outer), made["lda"]))
    a[:, :-1] += 2 * np.eye(max(1, outer), made["lda"] - 1)
    made["a"] = a.reshape(-1)
    long = spelling.routine == "ger" or transposed
    sizes = {"x": rows if long and not square else n, "y": n if long or square else rows}
    for name, inc in (("x", incx), ("y", incy)):
        made[name] = rng.normal(size=max(1, 1 + (sizes[name] - 1) * abs(inc)))
    if beta == 0:
        made["y"][:] = np.nan
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("symbol", ["cblas_d{}", "d{}_"])
def test_all_flags(symbol: str, routine: str) -> None:
    spelling = spelled(symbol.format(routine))
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        for incx, incy in ((1, 1), (-2, 3), (2, -1)):
            check(spelling, _case(spelling, flags, rng, 2, 3, incx, incy, 0.3), rng)


@pytest.mark.parametrize("routine", ROUTINES)
def test_nan_in_y_and_no_elements(routine: str) -> None:
    spelling = spelled(f"cblas_d{routine}")
    assert spelling is not None
    rng = np.random.default_rng(2)
    first, *_, last = flag_cases(spelling)
    for flags in (first, last):
        for m, n in ((0, 2), (2, 0), (1, 1), (3, 2)):
            beta = 0.0 if routine in ("gemv", "symv") else 0.5
            check(spelling, _case(spelling, flags, rng, m, n, 1, -1, beta), rng)


@pytest.mark.parametrize("routine", ROUTINES)
def test_single_precision(routine: str) -> None:
    spelling = spelled(f"cblas_s{routine}" if ROUTINES.index(routine) % 2 else f"s{routine}_")
    assert spelling is not None
    rng = np.random.default_rng(3)
    check_single(spelling, _case(spelling, flag_cases(spelling)[-1], rng, 3, 4, 2, -1, 0.5), rng)
