"""QR factorisation: tall, wide and square matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from blas_cases import arguments, check, check_single

from irgrad.rules.blas.spelling import spelled


def _case(spelling: Any, rng: np.random.Generator, m: int, n: int) -> Any:
    made: dict[str, Any] = {"m": m, "n": n, "lda": m + 1, "a": rng.normal(size=n * (m + 1)), "tau": np.zeros(min(m, n))}
    made |= {"work": np.zeros(34 * n), "lwork": 34 * n, "info": np.zeros(1, np.int32)}
    return arguments(spelling, made)


def test_shapes() -> None:
    spelling, single = spelled("dgeqrf_"), spelled("sgeqrf_")
    assert spelling is not None
    assert single is not None
    rng = np.random.default_rng(1)
    for m, n in ((3, 3), (4, 2), (2, 4), (1, 1), (3, 1)):
        check(spelling, _case(spelling, rng, m, n), rng, rtol=1e-7)
    check_single(single, _case(single, rng, 4, 3), rng, garbage=("work",))
