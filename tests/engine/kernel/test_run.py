"""Runs leave their arguments alone, tangents are checked, unit arrays enumerate."""

from __future__ import annotations

import numpy as np
import pytest

from irgrad import load
from irgrad.engine.kernel.run import Run, basis, like
from irgrad.rules.errors import DTypeError, ShapeError


def test_basis() -> None:
    rows = [unit.copy() for _, unit in basis((2, 2), np.float64)]
    assert np.array_equal(np.stack(rows).reshape(4, 4), np.eye(4))


def test_an_overwritten_argument_is_there_for_the_next_run() -> None:
    """Two runs of the same bound arguments: neither sees what the other wrote."""
    kernel = load("void f(double *y) { y[0] *= 2; }").kernel("f", "void(inout f64[1] y)")
    bound = kernel.bind((np.array([3.0]),), {})
    for _ in range(2):
        run = Run(kernel.primal, bound, {})
        assert [run()[0].item(), run()[0].item()] == [6.0, 6.0]


def test_like() -> None:
    assert like(1, np.array(0.0), "tangent").dtype == np.float64
    with pytest.raises(ShapeError, match="the tangent has shape"):
        like(np.ones(2), np.ones(3), "tangent")
    with pytest.raises(ShapeError, match="the tangent is no array"):
        like((np.ones(3), np.ones(2)), np.ones(3), "tangent")
    with pytest.raises(DTypeError, match="the tangent has dtype float32"):
        like(np.ones(3, np.float32), np.ones(3), "tangent")
