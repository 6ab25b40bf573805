"""Tangents are checked, unit arrays enumerate."""

from __future__ import annotations

import numpy as np
import pytest

from irgrad.engine.run import basis, like
from irgrad.rules.errors import DTypeError, ShapeError


def test_basis() -> None:
    rows = [unit.copy() for _, unit in basis((2, 2), np.float64)]
    assert np.array_equal(np.stack(rows).reshape(4, 4), np.eye(4))


def test_like() -> None:
    assert like(1, np.array(0.0), "tangent").dtype == np.float64
    with pytest.raises(ShapeError, match="the tangent has shape"):
        like(np.ones(2), np.ones(3), "tangent")
    with pytest.raises(DTypeError, match="the tangent has dtype float32"):
        like(np.ones(3, np.float32), np.ones(3), "tangent")
