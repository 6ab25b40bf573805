"""Rows of `rounding_and_minmax`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import check_kinks, check_mpmath_reading, check_mutants, check_partials, rows_of

from irgrad.rules.readings import evaluate
from irgrad.rules.row import Row
from irgrad.rules.table import rows

ROWS = rows_of("rounding_and_minmax")
KINKS = [row for row in ROWS if row.kinks]
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
each_dtype = pytest.mark.parametrize("dtype", ["f64", "f32"])


@each_dtype
@each_row
def test_partials_are_right(row: Row, dtype: str) -> None:
    check_partials(row, dtype)


@pytest.mark.slow
@each_dtype
@each_row
def test_partials_are_right_at_many_points(row: Row, dtype: str) -> None:
    check_partials(row, dtype, 1024)


@each_row
def test_mpmath_reading_is_the_derivative(row: Row) -> None:
    check_mpmath_reading(row)


@each_row
def test_mutants_are_caught(row: Row) -> None:
    check_mutants(row)


@pytest.mark.parametrize("row", KINKS, ids=lambda row: row.key)
def test_kinks_have_their_documented_value(row: Row) -> None:
    check_kinks(row)


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
