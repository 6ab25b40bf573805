"""Bytes of pieces of the tape."""

from __future__ import annotations

from irgrad.engine.report.formulas import Iteration, Symbol, apply, of_atom
from irgrad.engine.report.sizes import Size, total_of

N, M = of_atom(Symbol("n")), of_atom(Symbol("m"))
K = of_atom(Iteration(0, "i3"))


def test_an_array_over_two_loops() -> None:
    size = Size(8, ((N, 0), (M, 2)))
    assert str(size) == "8*m*n + 16*n"
    assert size.evaluate({"n": 3, "m": 1}) == 80  # 72, rounded up
    assert size.evaluate({"n": -1, "m": 5}) == 0


def test_a_piece_in_each_iteration() -> None:
    assert Size(24, (), ((0, N),)).evaluate({"n": 5}) == 5 * 32
    size = Size(8, ((K, 0),), ((0, N),))
    assert str(size.total) == "4*n^2 - 4*n"
    assert size.evaluate({"n": 4}) == 0 + 16 + 16 + 32
    assert Size(8, ((K, 0),), ((0, N),)).evaluate({"n": 0}) == 0


def test_extra_bytes() -> None:
    assert Size(8, ((N, 0),), extra=16).evaluate({"n": 2}) == 32
    assert str(Size(8, ((N, 0),), extra=16)) == "8*n + 16"


def test_totals_in_words() -> None:
    assert total_of([]) == "0"
    assert total_of([Size(8, ((N, 0),)), Size(16, (), ((0, M),))]) == "16*m + 8*n bytes"
    assert total_of([Size(8, ((N, 0),), exact=False)]) == "at most 8*n bytes"
    unknown = Size(8, ((apply("max", K, M), 0),), ((0, N),))
    assert unknown.total is None
    assert total_of([unknown]).startswith("the sum of ")
    assert unknown.evaluate({"n": 3, "m": 1}) == 16 * 3
