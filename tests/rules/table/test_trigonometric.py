"""Rows of `trigonometric`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import check_kinks, check_mpmath_reading, check_mutants, check_partials, rows_of

from irgrad.rules.readings import evaluate
from irgrad.rules.row import Row
from irgrad.rules.table import rows

ROWS = rows_of("trigonometric")
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


def test_atan2_and_hypot_neither_overflow_nor_underflow() -> None:
    for size in (1e200, 1e-200):
        at = [np.float64(3 * size), np.float64(4 * size)]
        by_a, by_b = (evaluate(p, at, []) for p in rows()["atan2"].partials[0])
        assert by_a == pytest.approx(0.16 / size)
        assert by_b == pytest.approx(-0.12 / size)
        slopes = [evaluate(p, at, [np.float64(5 * size)]) for p in rows()["hypot"].partials[0]]
        assert slopes == pytest.approx([0.6, 0.8])
