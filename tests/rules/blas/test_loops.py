"""Triangles and products on them are used by symv, trmv, syrk and trmm; here: blocks, and orders of one and zero."""

from __future__ import annotations

import numpy as np
import pytest
from blas_cases import kernel

from irgrad.engine import vjp
from irgrad.rules.blas.spelling import spelled


@pytest.mark.parametrize("n", [0, 1, 64, 65])
@pytest.mark.parametrize("diag", [131, 132])
def test_product_on_a_triangle(n: int, diag: int) -> None:
    spelling = spelled("cblas_dtrsm")
    assert spelling is not None
    rng = np.random.default_rng(n)
    a, b, seed = np.tril(rng.normal(size=(n, n))) / max(n, 1), rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    a += np.eye(n)
    real = a if diag == 131 else np.tril(a, -1) + np.eye(n)
    _, pull = vjp(kernel(spelling), 101, 141, 122, 111, diag, n, 2, 1.0, a.reshape(-1), max(n, 1), b.reshape(-1), 2)
    _, da, db = (g for g in pull(seed.reshape(-1)) if g is not None)
    want = np.linalg.solve(real.T, seed)
    np.testing.assert_allclose(db.reshape(n, 2), want, rtol=1e-10)
    np.testing.assert_allclose(da.reshape(n, n), np.tril(-want @ np.linalg.solve(real, b).T, -(diag == 132)), rtol=1e-9,
                               atol=1e-12)  # fmt: skip
