"""Cholesky factorisation and solves: both triangles, several blocks, both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases, kernel

from irgrad.engine import vjp
from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, flags: dict[str, int], rng: np.random.Generator, n: int, nrhs: int) -> Any:
    lda = n + 2
    a = rng.normal(size=(max(n, 1), lda))
    a[:, :n] = 0.3 * a[:, :n] + 0.3 * a[:, :n].T + 2 * np.eye(n)
    made: dict[str, Any] = {"n": n, "nrhs": nrhs, "lda": lda, "ldb": n + 1, "a": a.reshape(-1), **flags}
    made["b"] = rng.normal(size=max(1, nrhs * (n + 1)))
    made["info"] = np.zeros(1, np.int32)
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ["potrf", "potrs"])
def test_both_triangles(routine: str) -> None:
    spelling = spelled(f"d{routine}_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        for n, nrhs in ((3, 2), (1, 1), (4, 0)):
            check(spelling, _case(spelling, flags, rng, n, nrhs), rng)
    single = spelled(f"s{routine}_")
    assert single is not None
    check_single(single, _case(single, flag_cases(single)[0], rng, 3, 2), rng)


@pytest.mark.parametrize("n", [64, 150])
@pytest.mark.parametrize("uplo", "LU")
def test_several_blocks(n: int, uplo: str) -> None:
    """Against the closed form of the whole matrix."""
    spelling = spelled("dpotrf_")
    assert spelling is not None
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    a = a @ a.T + n * np.eye(n)
    seed = np.tril(rng.normal(size=(n, n)))
    factor = np.linalg.cholesky(a)
    stored, given = (a, seed) if uplo == "L" else (a.T, seed.T)
    out, pull = vjp(kernel(spelling), ord(uplo), n, stored.T.reshape(-1), n, np.zeros(1, np.int32))
    got = np.reshape(out[0], (n, n)).T
    np.testing.assert_allclose(np.tril(got) if uplo == "L" else np.triu(got).T, factor, rtol=1e-10, atol=1e-12)
    gradient = next(g for g in pull((given.T.reshape(-1), None)) if g is not None).reshape(n, n).T
    p = np.tril(factor.T @ seed)
    np.fill_diagonal(p, np.diag(p) / 2)
    s = np.linalg.solve(factor.T, np.linalg.solve(factor.T, p.T).T)
    want = np.tril(s + s.T)
    np.fill_diagonal(want, np.diag(s))
    np.testing.assert_allclose(gradient if uplo == "L" else gradient.T, want, rtol=1e-9, atol=1e-12)
