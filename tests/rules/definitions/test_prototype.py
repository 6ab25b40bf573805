"""Prototypes as rules state them."""

from __future__ import annotations

import pytest

from irgrad.rules.definitions.prototype import parse
from irgrad.rules.errors import SignatureError


def test_every_kind_of_parameter() -> None:
    text = "f64(f64[n,2*n+1] A, f64* p, const double *q, i32& n, out f64[n] x, f32[m] inout y, i64 m, ptr h, int k)"
    read = parse(text)
    assert read.returns == "f64"
    assert [p.kind for p in read.params] == ["array", "pointer", "pointer", "reference", "array", "array", "scalar",
                                             "pointer", "scalar"]  # fmt: skip
    assert [p.intent for p in read.params] == ["in", "inout", "in", "in", "out", "inout", "in", "inout", "in"]
    assert read.params[0].extents == ("n", "2*n+1")
    assert [p.dtype for p in read.params] == ["f64", "f64", "f64", "i32", "f64", "f32", "i64", "ptr", "i32"]
    assert read.position("x") == 4
    assert read.position("z") is None


def test_it_prints_what_it_reads() -> None:
    text = "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)"
    assert str(parse(text)) == text
    assert str(parse("double(const double *x, float* y, long n)")) == "f64(in f64* x, f32* y, i64 n)"
    assert str(parse("f64(in f64* x, f32* y, i64 n)")) == "f64(in f64* x, f32* y, i64 n)"


def test_extents_may_choose() -> None:
    read = parse("void(f64[k if t == 111 else m, 3] A, i32 t, i32 k, i32 m)")
    assert read.params[0].extents == ("k if t == 111 else m", "3")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("f64 x", "no prototype"),
        ("void(f63 x)", "`f63` is no type"),
        ("void(f64[n(2)] x)", "`n\\(2\\)` is no extent"),
        ("void(f64[n+] x)", "no extent"),
        ("void(f64 x y z)", "cannot read the parameter"),
    ],
)
def test_errors(text: str, what: str) -> None:
    with pytest.raises(SignatureError, match=what):
        parse(text)
