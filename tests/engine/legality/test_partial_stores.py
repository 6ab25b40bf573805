"""Programs that put bits into active floats: what has a derivative is right, the rest is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from handwritten.bit_programs import REFUSED, RIGHT, ROUNDED, source

import irgrad
from irgrad import engine

X, K = np.array([1.31, 0.77, 1.9]), 2
SIGNATURE = "f64(f64[3] x, i64 k)"


@cache
def _library(which: str, level: str) -> Any:
    table = {"refused": REFUSED, "right": RIGHT, "rounded": ROUNDED}[which]
    return irgrad.load(source(table), opt=level, flags=["-fno-strict-aliasing", "-Wno-everything"])


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, level: str) -> None:
    kernel = _library("refused", level).kernel(name, SIGNATURE)
    with pytest.raises(irgrad.Unsupported) as caught:  # the check is the same in both modes
        engine.grad(kernel, wrt="x")(X, K) if level == "O0" else engine.jvp(kernel, (X, K), (X, None))
    for part in (" in ", "which", "because", "to fix", "<string>:"):
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, level: str) -> None:
    kernel = _library("right", level).kernel(name, SIGNATURE)
    h = 1e-4
    want = np.array([(kernel(X + h * e, K) - kernel(X - h * e, K)) / (2 * h) for e in np.eye(3)])
    tolerance = 2e-3 if "float" in RIGHT[name][1] else 1e-6
    scale = max(1.0, float(np.abs(want).max()))
    assert np.abs(engine.grad(kernel, wrt="x")(X, K) - want).max() <= tolerance * scale
    forward = [engine.jvp(kernel, (X, K), (e, None))[1] for e in np.eye(3)]
    assert np.abs(forward - want).max() <= tolerance * scale


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("name", ROUNDED)
def test_last_bits_are_rounding(name: str, level: str) -> None:
    """Of the number that is meant: the product of all three, or a sum of squares of which half the bits are left."""
    kernel = _library("rounded", level).kernel(name, SIGNATURE)
    a, b, c = X
    want = [2 * a * b * b, 2 * b * a * a, 2 * c] if name == "array_half" else [b * c, a * c, a * b]
    assert engine.grad(kernel, wrt="x")(X, K) == pytest.approx(want, rel=1e-5)
    assert [engine.jvp(kernel, (X, K), (e, None))[1] for e in np.eye(3)] == pytest.approx(want, rel=1e-5)
