"""Rows of `rounding_and_minmax`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
from oracle.rule_checks import rows_of

from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.table import rows

from .contract import ContractWithKinks

ROWS = rows_of("rounding_and_minmax")


class TestRows(ContractWithKinks):
    """The contract of every row."""


def test_a_nan_argument_that_is_passed_over_is_not_chosen() -> None:
    nan, one = np.float64("nan"), np.float64(1.0)
    for key in ("fmax", "fmin"):
        first, second = rows()[key].partials[0]
        assert [evaluate(p, [nan, one], [one]) for p in (first, second)] == [0.0, 1.0]
        assert [evaluate(p, [one, nan], [one]) for p in (first, second)] == [1.0, 0.0]


def test_functions_without_float_results_have_no_partials() -> None:
    for key in ("to_integer", "classify"):
        assert rows()[key].partials == ()
        assert rows()[key].constant
