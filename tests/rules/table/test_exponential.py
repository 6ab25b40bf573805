"""Rows of `exponential`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import check_kinks, check_mpmath_reading, check_mutants, check_partials, rows_of

from irgrad.rules.readings import evaluate
from irgrad.rules.row import Row
from irgrad.rules.table import rows

ROWS = rows_of("exponential")
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


def test_expm1_keeps_its_digits_far_left() -> None:
    got = evaluate(rows()["expm1"].partials[0][0], [np.float64(-40.0)], [np.float64(-1.0)])
    assert got == pytest.approx(4.248354255291589e-18, rel=1e-14)


def test_powi_at_zero_for_every_exponent() -> None:
    partial = rows()["powi"].partials[0][0]
    at_zero = [float(evaluate(partial, [np.float64(0.0), n], [np.float64(n == 0)])) for n in range(4)]
    assert at_zero == [0.0, 1.0, 0.0, 0.0]
