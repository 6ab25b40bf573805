"""Every way to write a signature wrongly gets a caret and a repair."""

from __future__ import annotations

import pytest

from irgrad.engine.signature.parser import parse_signature
from irgrad.rules.errors import SignatureError


def test_parameters() -> None:
    returns, rows, _ = parse_signature("void(inout f64[n,3] pos, in f64[n] mass, out f32 e, i32 n, bool b, f64[] p)")
    assert returns is None
    assert [str(p) for p in rows] == [
        "inout f64[n,3] pos", "f64[n] mass", "out f32[] e", "i32 n", "bool b", "f64[] p",
    ]  # fmt: skip
    assert [p.is_array for p in rows] == [True, True, True, False, False, True]


@pytest.mark.parametrize("text", ["f64()", "f64(void)", "f64 ( f64\nx )"])
def test_spacing_and_empty_lists(text: str) -> None:
    returns, rows, _ = parse_signature(text)
    assert str(returns) == "f64" and len(rows) in (0, 1)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("f64(double x)", 4, "write `f64`"),
        ("float(f64 x)", 0, "write `f32`"),
        ("f64(f46 x)", 4, "write `f64`"),
        ("f64(f64[n x)", 10, "expected `]`, got `x`"),
        ("f64(f64* x)", 7, "a bare pointer"),
        ("f64(f64 x", 9, "expected `)`, got the end"),
        ("f64(f64 x) y", 11, "after the closing"),
        ("f64(f64 x[3])", 9, "the shape stands after the name"),
        ("f64[3](f64 x)", 3, "a returned array"),
        ("f64(f64 x, f64 x)", 15, "names two parameters"),
        ("f64(f64[] )", 10, "expected the name"),
        ("f64(f64[n,] x)", 10, "expected an extent"),
        ("f64(f64[...] x)", 8, "unexpected `.`"),
        ("f64(c128 z)", 4, "last axis of 2"),
        ("f64(3 x)", 4, "expected a parameter"),
        ("", 0, "expected a return type, got the end"),
    ],
)
def test_errors_point_at_the_place(text: str, column: int, part: str) -> None:
    with pytest.raises(SignatureError) as caught:
        parse_signature(text)
    assert part in str(caught.value)
    source, caret = caught.value.where.split("\n")
    assert source == text and caret == " " * column + "^"
    assert caught.value.fix


def test_not_a_string() -> None:
    with pytest.raises(SignatureError, match="a signature is a string"):
        parse_signature(3)  # type: ignore[arg-type]
