"""Rows of `complex`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import pytest
from oracle.rule_checks import check_mpmath_reading, check_mutants, check_partials, rows_of

from irgrad.rules.row import Row

ROWS = rows_of("complex")
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


def test_packed_and_plain_outputs_are_pairs() -> None:
    for row in ROWS:
        assert len(row.outputs) == (1 if row.key == "carg" else 2)
