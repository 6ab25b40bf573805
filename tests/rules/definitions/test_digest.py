"""Digests of bodies: equal for equal code, different for anything that changes what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import irgrad
from irgrad.rules.definitions.digest import digest_of

Body = Callable[[Any], Any]
FACTOR = 2.0


def _uses_factor(x: Any) -> Any:
    return FACTOR * x


def _make(factor: Any) -> Body:
    return lambda x: factor * x


def test_equal_code_is_equal() -> None:
    assert digest_of(_make(2.0)) == digest_of(_make(2.0))
    assert digest_of(_make(np.arange(3.0))) == digest_of(_make(np.arange(3.0)))


def test_closures_globals_and_helpers_count() -> None:
    global FACTOR
    assert digest_of(_make(2.0)) != digest_of(_make(3.0))
    assert digest_of(_make(np.arange(3.0))) != digest_of(_make(np.arange(3.0) + 1))
    before = digest_of(_uses_factor)
    FACTOR = 3.0
    assert digest_of(_uses_factor) != before
    FACTOR = 2.0
    assert digest_of(_uses_factor) == before
    assert digest_of(_make(lambda x: x)) != digest_of(_make(lambda x: x + 1))


def test_what_has_no_digest_counts_by_identity() -> None:
    one, other = object(), object()
    assert digest_of(_make(one)) == digest_of(_make(one))
    assert digest_of(_make(one)) != digest_of(_make(other))


def test_recursion_ends() -> None:
    def body(x: Any) -> Any:
        return body(x)

    assert digest_of(body) == digest_of(body)


def test_kernels_in_closures_count_by_their_code() -> None:
    first, same, other = (
        irgrad.load(f"double f(double x) {{ return {factor} * x; }}").kernel("f") for factor in ("2", "2", "3")
    )
    assert repr(first) == repr(other)
    assert digest_of(_make(first)) == digest_of(_make(same)) != digest_of(_make(other))
