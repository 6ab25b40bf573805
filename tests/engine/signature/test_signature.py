"""Which names shapes determine, and what does not fit."""

from __future__ import annotations

import pytest

from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import ShapeError, SignatureError


@pytest.mark.parametrize(
    ("text", "arguments", "sizes"),
    [
        ("f64(f64[n,3] pos, f64[n] mass, i64 n)", ["pos", "mass"], {"n"}),
        ("f64(f64[2*n+1] x, i64 n)", ["x"], {"n"}),
        ("f64(f64[n*m] x, i64 n, i64 m)", ["x", "n", "m"], set()),
        ("f64(f64[n*m] x, f64[m] y, i64 n, i64 m)", ["x", "y", "n"], {"m"}),  # n*m does not give n when m is 0
        ("void(out f64[n] y, i64 n)", ["n"], set()),
        ("void(i32 n, inout f64[n] y, f64 dt)", ["y", "dt"], {"n"}),
        ("f64(f64 x)", ["x"], set()),
        ("f64(f64[n] x)", ["x"], set()),
    ],
)
def test_size_arguments(text: str, arguments: list[str], sizes: set[str]) -> None:
    signature = Signature(text)
    assert [p.name for p in signature.arguments] == arguments
    assert signature.sizes == sizes
    assert Signature(str(signature)) == signature


def test_extents_solve_and_scalars_count() -> None:
    signature = Signature("f64(f64[2*n+1,m] x, f64[m] y, i64 n, i64 k, out f64[n*k] z)")
    assert signature.solve({"x": (7, 4), "y": (4,)}, {"k": 2}) == {"n": 3, "m": 4, "k": 2}


@pytest.mark.parametrize(
    ("shapes", "message", "reason"),
    [
        ({"pos": (4,), "mass": (4,)}, "`pos` has rank 1, wanted rank 2", "its shape is (4,)"),
        ({"pos": (4, 2), "mass": (4,)}, "`pos` has extent 2 on axis 1, wanted 3", "f64[n,3] pos"),
        ({"pos": (4, 3), "mass": (5,)}, "`mass` has extent 5 on axis 0, wanted 4", "`n` is 4 from axis 0 of `pos`"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], message: str, reason: str) -> None:
    signature = Signature("f64(f64[n,3] pos, f64[n] mass, i64 n)")
    with pytest.raises(ShapeError) as caught:
        signature.solve(shapes, {})
    assert caught.value.what == message
    assert reason in caught.value.because and caught.value.fix


def test_no_integer_fits() -> None:
    with pytest.raises(ShapeError, match="no integer `n` makes `2\\*n\\+1` equal to 4"):
        Signature("f64(f64[2*n+1] x, i64 n)").solve({"x": (4,)}, {})


def test_negative_output_extent() -> None:
    signature = Signature("void(f64[n] x, out f64[n-2] y)")
    with pytest.raises(ShapeError, match="extent `n-2` of `y` is no size"):
        signature.parameters[1].extents({"n": 1})


@pytest.mark.parametrize(
    "text", ["f64(f64[n] x, out f64[k] y)", "f64(f64[k*j] x, i64 k)", "f64(f64[n] x, f64 m, out f64[m] y)"]
)
def test_an_extent_determined_by_nothing(text: str) -> None:
    with pytest.raises(SignatureError, match="is determined by nothing"):
        Signature(text)
