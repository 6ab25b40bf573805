"""Comparisons the other way, by numbers of eight bits with and without sign."""

from __future__ import annotations

import operator

import pytest

from irgrad.engine.ir.predicates import INVERSE, SWAPPED

ORDERS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
          "ge": operator.ge}  # fmt: skip
NUMBERS = (0, 1, 2, 127, 128, 200, 255)


def _holds(pred: str, a: int, b: int) -> bool:
    if pred[0] == "s":
        a, b = (n - 256 * (n > 127) for n in (a, b))
    return bool(ORDERS[pred if pred in ORDERS else pred[1:]](a, b))


@pytest.mark.parametrize("pred", INVERSE)
def test_inverse_and_swapped(pred: str) -> None:
    assert INVERSE.keys() == SWAPPED.keys()
    for a in NUMBERS:
        for b in NUMBERS:
            assert _holds(pred, a, b) is not _holds(INVERSE[pred], a, b)
            assert _holds(pred, a, b) is _holds(SWAPPED[pred], b, a)
