"""Singular values and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single

from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, job: str, rng: np.random.Generator, m: int, n: int) -> Any:
    k = min(m, n)
    left, _ = np.linalg.qr(rng.normal(size=(m, m)))
    right, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a = np.zeros((n, m + 1))
    a[:, :m] = ((left[:, :k] * (np.arange(k) + 0.7)) @ right[:k]).T
    room = 4 * k * k + 7 * k + 64 * (m + n)
    made: dict[str, Any] = {"job": ord(job), "m": m, "n": n, "lda": m + 1, "a": a.reshape(-1), "s": np.zeros(k)}
    made |= {"u": np.zeros(m * k), "ldu": m, "vt": np.zeros(k * n), "ldvt": k, "work": np.zeros(room), "lwork": room}
    made |= {"iwork": np.zeros(8 * k, np.int32), "info": np.zeros(1, np.int32)}
    return arguments(spelling, made)


@pytest.mark.parametrize("job", "SAN")
def test_values_and_vectors(job: str) -> None:
    spelling = spelled("dgesdd_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    garbage = ("work", "a", "u", "vt") if job == "N" else ("work", "a")
    for m, n in ((3, 3), (1, 1)) if job == "A" else ((3, 3), (4, 2), (2, 4), (1, 1)):
        check(spelling, _case(spelling, job, rng, m, n), rng, rtol=1e-7, garbage=garbage)
    if job == "S":
        single = spelled("sgesdd_")
        assert single is not None
        check_single(single, _case(single, job, rng, 3, 3), rng, garbage=("work", "a"))
