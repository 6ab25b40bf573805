"""Rows of `pointer_outputs`: the contract of every row, and what is particular to this family."""

from __future__ import annotations

from oracle.rule_checks import rows_of

from .contract import ContractWithKinks

ROWS = rows_of("pointer_outputs")


class TestRows(ContractWithKinks):
    """The contract of every row."""


def test_results_go_where_the_prototype_says() -> None:
    places = {row.key: row.outputs for row in ROWS}
    assert places["sincos"] == (("ptr", 1), ("ptr", 2))
    assert places["sincos.pair"] == (("ret", 0), ("ret", 1))
    assert places["modf"] == ("ret", ("ptr", 1))
    assert places["frexp"] == ("ret",)
    assert places["frexp.pair"] == (("ret", 0),)
