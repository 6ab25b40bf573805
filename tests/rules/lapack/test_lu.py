"""LU factorisation with row exchanges, solves and inverses with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases
from scipy.linalg import lapack

from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, flags: dict[str, int], rng: np.random.Generator, m: int, n: int, nrhs: int) -> Any:
    if spelling.routine != "getrf":
        m = n
    a = 0.3 * rng.normal(size=(n, m + 1))
    for j in range(min(m, n)):
        a[j, (j + 1) % m] += 2  # rows are exchanged
    made: dict[str, Any] = {"m": m, "n": n, "nrhs": nrhs, "lda": m + 1, "ldb": n + 2, **flags}
    made |= {"lwork": 4 * n, "work": np.zeros(4 * n), "b": rng.normal(size=nrhs * (n + 2))}
    made["info"] = np.zeros(1, np.int32)
    made["ipiv"] = np.zeros(min(m, n), np.int32)
    if spelling.routine in ("getrs", "getri"):
        factors, pivots, _ = lapack.dgetrf(a[:, :n].T)
        a[:, :n] = factors.T
        made["ipiv"] = (pivots + 1).astype(np.int32)
    made["a"] = a.reshape(-1)
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ["getrf", "getrs", "gesv", "getri"])
def test_solves_and_shapes(routine: str) -> None:
    spelling = spelled(f"d{routine}_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        for m, n in ((3, 3), (4, 2), (2, 4), (1, 1)):
            check(spelling, _case(spelling, flags, rng, m, n, 2), rng, rtol=1e-7)
    single = spelled(f"s{routine}_")
    assert single is not None
    check_single(single, _case(single, flag_cases(single)[-1], rng, 3, 3, 2), rng)


@pytest.mark.parametrize("incx", [1, -1])
def test_exchanges_of_rows(incx: int) -> None:
    spelling = spelled("dlaswp_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    made = {"n": 2, "lda": 5, "k1": 1, "k2": 3, "incx": incx, "a": rng.normal(size=10),
            "ipiv": np.array([3, 4, 3], np.int32)}  # fmt: skip
    check(spelling, arguments(spelling, made), rng)
