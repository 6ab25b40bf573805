"""Symmetric eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases

from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, flags: dict[str, int], rng: np.random.Generator, n: int) -> Any:
    a = np.pad(0.3 * rng.normal(size=(n, n)), ((0, 0), (0, 1)))
    a[:, :n] += np.diag(np.arange(n) + 0.5)
    made: dict[str, Any] = {"n": n, "lda": n + 1, "a": a.reshape(-1), "w": np.zeros(n), **flags}
    made |= {"work": np.zeros(34 * n), "lwork": 34 * n, "info": np.zeros(1, np.int32)}
    return arguments(spelling, made)


@pytest.mark.parametrize("job", "VN")
def test_values_and_vectors(job: str) -> None:
    spelling = spelled("dsyev_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        if flags["jobz"] == ord(job):
            garbage = ("work",) if job == "V" else ("work", "a")
            for n in (3, 1):
                check(spelling, _case(spelling, flags, rng, n), rng, rtol=1e-7, garbage=garbage)
    if job == "V":
        single = spelled("ssyev_")
        assert single is not None
        check_single(single, _case(single, flag_cases(single)[0], rng, 3), rng, garbage=("work",))
