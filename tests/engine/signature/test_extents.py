"""Extents evaluate, print back and solve."""

from __future__ import annotations

import pytest

from irgrad.engine.signature.extents import Extent
from irgrad.engine.signature.signature import Signature


def extent(text: str) -> Extent:
    signature = Signature(f"void(i64 n, i64 m, i64 k, out f64[{text}] y)")
    return (signature.parameters[3].shape or ())[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("n", 5), ("2*n+1", 11), ("n*m", 15), ("(n+1)/2", 3), ("n-m-1", 1), ("n-(m-1)", 3), ("n%m", 2),
     ("-n+9", 4)],
)
def test_value_and_printing(text: str, value: int) -> None:
    names = {"n": 5, "m": 3, "k": 2}
    assert extent(text).value(names) == value
    assert extent(str(extent(text))).value(names) == value  # printing keeps the meaning


def test_degree() -> None:
    assert [extent(t).degree("n") for t in ("3", "2*n+1", "n*n", "n/2", "m*n", "m")] == [0, 1, 2, 2, 1, 0]


def test_solve_finds_the_integer_or_nothing() -> None:
    odd = extent("2*n+1")
    assert odd.solve("n", 11, {}) == 5
    assert odd.solve("n", 10, {}) is None
    assert extent("n+4").solve("n", 2, {}) is None  # negative
    assert extent("n*m").solve("n", 0, {"m": 0}) is None  # any n would do: no answer
