"""Rows of `complex`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

from oracle.rule_checks import rows_of

from .contract import Contract

ROWS = rows_of("complex")


class TestRows(Contract):
    """The contract of every row."""


def test_packed_and_plain_outputs_are_pairs() -> None:
    for row in ROWS:
        assert len(row.outputs) == (1 if row.key == "carg" else 2)
