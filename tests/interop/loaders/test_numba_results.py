"""Arrays and tuples that Python functions return."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.interop.loaders.numba_results import Result, parsed

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=5), RNG.normal(size=(3, 4))


def squares(x: Any) -> Any:
    return x * x + np.sin(x)


def with_total(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] ** 3
    return y, y.sum()


def pair(x: Any) -> Any:
    return x * 2, x * x


def transposed(a: Any) -> Any:
    return (a * a).T


def every_second(x: Any) -> Any:
    return (x * x)[::2]


def itself(x: Any) -> Any:
    return x


def numbers(x: Any) -> Any:
    return x[0] * x[1], x[2]


def sorted_by(x: Any) -> Any:
    return np.argsort(x), x * x


def euler(y: Any, h: Any) -> Any:
    made = y.copy()
    return made + h * made * made


PROGRAMS: list[tuple[Any, str, tuple[Any, ...]]] = [
    (with_total, "void(out f64[n] y, out f64 s, f64[n] x)", (X,)),
    (transposed, "void(out f64[m,n] y, f64[n,m] a)", (A,)),
    (squares, "void(out f64[n] y, f64[n] x)", (X,)),
    (pair, "void(out f64[n] y, out f64[n] z, f64[n] x)", (X,)),
    (every_second, "void(out f64[3] y, f64[5] x)", (X,)),
    (itself, "void(out f64[n] y, f64[n] x)", (X,)),
    (numbers, "void(out f64 y, out f64 z, f64[n] x)", (X,)),
    (sorted_by, "void(out i64[n] y, out f64[n] z, f64[n] x)", (X,)),
    (euler, "void(out f64[n] z, f64[n] y, f64 h)", (X, 0.1)),
]


@pytest.mark.parametrize(("function", "signature", "args"), PROGRAMS)
def test_results(function: Any, signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.from_numba(function, signature)
    made, expected = kernel(*args), function(*args)
    rows = (made, expected) if isinstance(expected, tuple) else ((made,), (expected,))
    for mine, python in zip(*rows, strict=True):
        np.testing.assert_allclose(mine, python, rtol=1e-13)
    assert engine.check(kernel, *args).ok


def test_under_jax() -> None:
    kernel = irgrad.jit("void(out f64[m,n] y, f64[n,m] a)")(transposed)
    with jax.enable_x64(True):
        by_jax = jax.jit(jax.grad(lambda a: (kernel(a) * A.T).sum()))(A)
        batch = jax.vmap(kernel)(np.stack([A, 2 * A]))
    np.testing.assert_allclose(by_jax, 2 * A * A, rtol=1e-13)
    np.testing.assert_allclose(batch[1], 4 * (A * A).T, rtol=1e-13)


def test_another_shape_is_an_error() -> None:
    kernel = irgrad.from_numba(every_second, "void(out f64[n] y, f64[n] x)")
    for call in (kernel, engine.jacrev(kernel)):
        with pytest.raises(irgrad.KernelError, match="returns an array of another shape than its signature says"):
            call(X)


@pytest.mark.parametrize(("function", "signature", "message"), [
    (squares, "f64(f64[n] x)", r"(?s)returns `array.*says `f64`.*\"void\(out f64\[n\] y, f64\[n\] x\)\""),
    (squares, "void(f64[n] x)", r"(?s)returns `array.*says `void`"),
    (with_total, "void(out f64[n] y, f64[n] x)", r"(?s)has `out f64\[n\] y` for it.*out f64\[n\] y, out f64 z, f64"),
    (squares, "void(out f32[n] y, f64[n] x)", r"(?s)has `out f32\[n\] y` for it.*out f64\[n\] y, f64"),
    (squares, "void(out f64 y, f64[n] x)", r"(?s)out f64\[n\] y, f64"),
    (lambda x: "a", "void(out f64[n] y, f64[n] x)", "return a number, an array, or a tuple"),
    (lambda x: x[0], "void(f64[n] x)", r'"f64\(f64\[n\] x\)"'),
])  # fmt: skip
def test_what_the_signature_says_otherwise(function: Any, signature: str, message: str) -> None:
    with pytest.raises(irgrad.SignatureError, match=message):
        irgrad.from_numba(function, signature)


def test_without_a_signature_the_draft_has_one() -> None:
    with pytest.raises(irgrad.SignatureError, match=r'"void\(out f64\[x_0\] y, f64\[x_0\] x\)"'):
        irgrad.jit(squares)(X)


def test_names_of_types() -> None:
    array = Result("float64", 2, "F")
    assert parsed("readonly array(float64, 2d, F)") == [array] and parsed("none") == []
    assert parsed("Tuple(array(float64, 2d, F), int64)") == [array, Result("int64")]
    assert parsed("UniTuple(array(float64, 2d, F) x 2)") == [array, array]
    assert parsed("Tuple(UniTuple(float64 x 2), int64)") is None and parsed("ListType[float64]") is None
