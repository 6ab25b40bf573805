"""The functions that rules are written with."""

from __future__ import annotations

import pytest

from irgrad.rules.expressions import functions
from irgrad.rules.expressions.costs import OPERATIONS
from irgrad.rules.expressions.expr import Arg, Op

BINARY = {"atan2", "hypot", "copysign"}


@pytest.mark.parametrize("name", sorted(set(functions.__all__) & set(OPERATIONS)))
def test_each_builds_the_operation_of_its_name(name: str) -> None:
    count = 3 if name == "fma" else 2 if name in BINARY | {"powi", "ldexp", "scalbln", "jn", "yn"} else 1
    built = getattr(functions, name)(*(Arg(i) for i in range(count)))
    assert isinstance(built, Op)
    assert built.name == name
    assert built.children == tuple(Arg(i) for i in range(count))


def test_those_with_names_of_their_own() -> None:
    assert functions.pow_(Arg(0), 2.5) is Arg(0) ** 2.5
    assert repr(functions.eq(Arg(0), 0.0)) == "(x0 == 0)"
    assert repr(functions.ne(Arg(0), 0.0)) == "(x0 != 0)"
    assert repr(functions.plus_one(Arg(0))) == "iadd1(x0)"
