"""Rows and the way they are defined."""

from __future__ import annotations

import pytest
from oracle.math_functions import FUNCTIONS

from irgrad.rules.expressions.expr import ZERO, Arg, Result
from irgrad.rules.expressions.functions import sin
from irgrad.rules.expressions.row import Family
from irgrad.rules.table import rows


def test_partials_stand_at_the_places_of_their_arguments() -> None:
    row = Family().define("f", "ifp", lambda n, x, y: sin(x) * y)
    assert row.partials == ((ZERO, sin(Arg(1)) * Result(0), ZERO),)
    assert (row.floats, row.pointers, row.constant) == ((1,), (2,), False)


def test_several_results() -> None:
    row = Family().define("f", "ff", lambda a, b, y: ((b, ZERO), (y[0], 1.0)), outputs=(("ret", 0), ("ret", 1)))
    assert row.partials[0] == (Arg(1), ZERO)
    assert row.partials[1][0] is Result(0)


def test_a_body_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="2 partials for 1 float arguments"):
        Family().define("f", "f", lambda x, y: (x, x))
    with pytest.raises(ValueError, match="partials of 1 results, 2 wanted"):
        Family().define("f", "f", lambda x, y: (x,), outputs=(("ret", 0), ("ret", 1)))


def test_every_row_with_a_float_result_has_an_oracle() -> None:
    assert {row.key for row in rows().values() if row.outputs} == set(FUNCTIONS)


def test_cost_prefers_the_result() -> None:
    table = rows()
    assert table["exp"].cost() == 0
    assert table["sqrt"].cost() == 4
    assert table["tanh"].cost() == 2
