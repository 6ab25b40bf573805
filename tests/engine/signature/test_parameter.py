"""One parameter of a function: how it prints, what is done to it, its extents as numbers."""

from __future__ import annotations

import pytest

from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import ShapeError


def _one(text: str) -> Parameter:
    return Signature(f"void({text}, i64 n)").parameters[0]


@pytest.mark.parametrize("text", ["f64[2*n+1,3] x", "out f32[n] y", "inout f64[] z", "f64 t", "status i32[] info"])
def test_it_prints_as_it_is_written(text: str) -> None:
    assert str(_one(text)) == text


def test_intents() -> None:
    kinds = [_one(t) for t in ("f64[n] x", "out f64[n] x", "inout f64[n] x", "f64 x", "status i32 x")]
    assert [p.is_input for p in kinds] == [True, False, True, True, False]
    assert [p.is_output for p in kinds] == [False, True, True, False, False]
    assert [p.is_array for p in kinds] == [True, True, True, False, True]


def test_extents_as_numbers() -> None:
    assert _one("f64[2*n+1,3] x").extents({"n": 4}) == (9, 3)
    assert _one("f64 x").extents({}) == ()
    with pytest.raises(ShapeError, match="no size"):
        _one("f64[n-3] x").extents({"n": 2})
    with pytest.raises(ShapeError, match="divides by zero"):
        _one("f64[6/n] x").extents({"n": 0})
