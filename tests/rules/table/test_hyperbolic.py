"""Rows of `hyperbolic`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

from oracle.rule_checks import rows_of

from .contract import ContractWithKinks

ROWS = rows_of("hyperbolic")


class TestRows(ContractWithKinks):
    """The contract of every row."""
