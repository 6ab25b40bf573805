"""Rows of `trigonometric`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import rows_of

from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.table import rows

from .contract import ContractWithKinks

ROWS = rows_of("trigonometric")


class TestRows(ContractWithKinks):
    """The contract of every row."""


def test_atan2_and_hypot_neither_overflow_nor_underflow() -> None:
    for size in (1e200, 1e-200):
        at = [np.float64(3 * size), np.float64(4 * size)]
        by_a, by_b = (evaluate(p, at, []) for p in rows()["atan2"].partials[0])
        assert by_a == pytest.approx(0.16 / size)
        assert by_b == pytest.approx(-0.12 / size)
        slopes = [evaluate(p, at, [np.float64(5 * size)]) for p in rows()["hypot"].partials[0]]
        assert slopes == pytest.approx([0.6, 0.8])
