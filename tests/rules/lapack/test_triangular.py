"""Triangular solves and inverses: all flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases

from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, flags: dict[str, int], rng: np.random.Generator, n: int, nrhs: int) -> Any:
    a = 0.4 * rng.normal(size=(n, n + 1))
    a[:, :n] += 2 * np.eye(n)
    made: dict[str, Any] = {"n": n, "nrhs": nrhs, "lda": n + 1, "ldb": n + 2, "a": a.reshape(-1), **flags}
    made["b"] = rng.normal(size=nrhs * (n + 2))
    made["info"] = np.zeros(1, np.int32)
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ["trtrs", "trtri"])
def test_all_flags(routine: str) -> None:
    spelling = spelled(f"d{routine}_")
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        check(spelling, _case(spelling, flags, rng, 3, 2), rng)
    single = spelled(f"s{routine}_")
    assert single is not None
    check_single(single, _case(single, flag_cases(single)[-1], rng, 3, 2), rng)
