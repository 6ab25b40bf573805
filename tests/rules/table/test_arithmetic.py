"""Rows of `arithmetic`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import check_kinks, check_mpmath_reading, check_mutants, check_partials, rows_of

from irgrad.rules.expr import needs
from irgrad.rules.lookup import opcode_row
from irgrad.rules.readings import evaluate
from irgrad.rules.row import Row

ROWS = rows_of("arithmetic")
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


def test_linear_rows_have_partials_without_floats() -> None:
    for row in ROWS:
        if row.linear:
            reads = {leaf.index for leaf in needs(*row.partials[0])}
            assert all(row.signature[i] == "i" for i in reads), row.key


def test_quotient_of_large_numbers_does_not_overflow_on_the_way() -> None:
    partial = opcode_row("fdiv").partials[0][1]  # type: ignore[union-attr]
    got = evaluate(partial, [np.float64(1e300), np.float64(1e200)], [np.float64(1e100)])
    assert got == pytest.approx(-1e-100)
