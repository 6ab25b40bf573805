"""Rows of `exponential`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import rows_of

from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.table import rows

from .contract import ContractWithKinks

ROWS = rows_of("exponential")


class TestRows(ContractWithKinks):
    """The contract of every row."""


def test_expm1_keeps_its_digits_far_left() -> None:
    got = evaluate(rows()["expm1"].partials[0][0], [np.float64(-40.0)], [np.float64(-1.0)])
    assert got == pytest.approx(4.248354255291589e-18, rel=1e-14)


def test_powi_at_zero_for_every_exponent() -> None:
    partial = rows()["powi"].partials[0][0]
    at_zero = [float(evaluate(partial, [np.float64(0.0), n], [np.float64(n == 0)])) for n in range(4)]
    assert at_zero == [0.0, 1.0, 0.0, 0.0]
