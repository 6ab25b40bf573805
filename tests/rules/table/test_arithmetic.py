"""Rows of `arithmetic`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.rule_checks import rows_of

from irgrad.rules.expressions.expr import needs
from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.lookup import opcode_row

from .contract import ContractWithKinks

ROWS = rows_of("arithmetic")


class TestRows(ContractWithKinks):
    """The contract of every row."""


def test_linear_rows_have_partials_without_floats() -> None:
    for row in ROWS:
        if row.linear:
            reads = {leaf.index for leaf in needs(*row.partials[0])}
            assert all(row.signature[i] == "i" for i in reads), row.key


def test_quotient_of_large_numbers_does_not_overflow_on_the_way() -> None:
    partial = opcode_row("fdiv").partials[0][1]  # type: ignore[union-attr]
    got = evaluate(partial, [np.float64(1e300), np.float64(1e200)], [np.float64(1e100)])
    assert got == pytest.approx(-1e-100)
