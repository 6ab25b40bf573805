"""Exceptions of Python functions: their constant parts, and what a kernel no longer computes for their texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.interop.loaders.numba_exceptions import buffers, with_constant_texts

X = np.array([1.0, 2.0, 3.0])


def below(x: Any, limit: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > limit:
            raise ValueError("element", i, "is too large")
        total += x[i] ** 2
    return total


def interior(u: Any) -> Any:
    v = u.copy()
    v[1:-1] += 0.5 * (u[2:] - 2 * u[1:-1] + u[:-2])  # shapes that differ would raise a text made of them
    return (v * v).sum()


def caught(x: Any) -> Any:
    try:
        if x[0] > 2:
            raise ValueError("too large")
        made = x[0] ** 2
    except Exception:
        made = 5 * x[1]
    return made


def test_the_constant_part_is_reported() -> None:
    kernel = irgrad.from_numba(below, "f64(f64[n] x, f64 limit)")
    np.testing.assert_allclose(engine.grad(kernel, wrt="x")(X, 4.0), 2 * X)
    for call in (kernel, engine.grad(kernel, wrt="x")):
        with pytest.raises(irgrad.KernelError, match="ValueError: element"):
            call(X, 2.5)


def test_no_text_is_made_of_shapes() -> None:
    kernel = irgrad.from_numba(interior, "f64(f64[n] u)")
    assert engine.check(kernel, np.random.default_rng(0).normal(size=7)).ok


def test_what_is_caught() -> None:
    kernel = irgrad.from_numba(caught, "f64(f64[n] x)")
    np.testing.assert_allclose(engine.grad(kernel)(X), [2, 0, 0])
    np.testing.assert_allclose(engine.grad(kernel)(3 * X), [0, 5, 0])


def test_printing_is_refused() -> None:
    def printing(x: Any) -> Any:
        print("x", x[0])
        return x[0] ** 2

    with pytest.raises(irgrad.CompileError, match=r"(?s)calls Python while it runs.*`print`.*leave it out"):
        irgrad.from_numba(printing, "f64(f64[n] x)")


def test_blocks_that_only_raise() -> None:
    text = """define i32 @f(ptr %retptr, ptr %excinfo, i1 %bad) {
entry:
  br i1 %bad, label %raise, label %"fine one"

raise:
  %made = call ptr @text()
  br i1 %bad, label %first, label %second

first:
  store ptr @.const.picklebuf.aa, ptr %excinfo, align 8
  ret i32 1

second:
  %whole = load { ptr, i32, ptr, ptr, i32 }, ptr @.const.picklebuf.bb, align 8
  ret i32 1

"fine one":
  ret i32 0
}
"""
    made = with_constant_texts(text)
    assert "raise:\n  store ptr @.const.picklebuf.bb, ptr %excinfo, align 8\n  ret i32 1\n" in made
    assert "@text" not in made and "first:" not in made and '"fine one":\n  ret i32 0' in made
    other = text.replace("i32 @f(ptr %retptr, ptr %excinfo", "i32 @f(ptr %a, ptr %b")
    assert with_constant_texts(other) == other and buffers(other) == []
