"""The contract of every row of a rule table, as tests that each family's module takes over."""

from __future__ import annotations

import pytest
from oracle.rule_checks import check_kinks, check_mpmath_reading, check_mutants, check_partials

from irgrad.rules.expressions.row import Row

each_dtype = pytest.mark.parametrize("dtype", ["f64", "f32"])


class Contract:
    """A family's tests: `class TestRows(Contract)` in a module with its `ROWS` (conftest.py hands them over)."""

    @each_dtype
    def test_partials_are_right(self, row: Row, dtype: str) -> None:
        check_partials(row, dtype)

    @pytest.mark.slow
    @each_dtype
    def test_partials_are_right_at_many_points(self, row: Row, dtype: str) -> None:
        check_partials(row, dtype, 1024)

    def test_mpmath_reading_is_the_derivative(self, row: Row) -> None:
        check_mpmath_reading(row)

    def test_mutants_are_caught(self, row: Row) -> None:
        check_mutants(row)


class ContractWithKinks(Contract):
    """The same for families with points where there is no derivative."""

    def test_kinks_have_their_documented_value(self, kinked: Row) -> None:
        check_kinks(kinked)
