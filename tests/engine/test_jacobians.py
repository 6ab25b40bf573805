"""Jacobians and Hessians against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from irgrad import engine

X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("jacobian", [engine.jacfwd, engine.jacrev])
def test_several_outputs_and_arguments(jacobian: object) -> None:
    rows = jacobian(sample("scale"), wrt=("x", "dt"))(X, 3.0)  # type: ignore[operator]
    (moved_x, moved_dt), (square_x, square_dt) = rows
    np.testing.assert_allclose(moved_x, 3 * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(moved_dt, X, rtol=1e-14)
    np.testing.assert_allclose(square_x, np.diag(18 * X), atol=1e-13)
    np.testing.assert_allclose(square_dt, 6 * X**2, rtol=1e-14)


def test_hessian_of_an_array() -> None:
    np.testing.assert_allclose(engine.hessian(sample("cubes"))(X, 2.0), np.diag(12 * X), atol=1e-13)


def test_hessian_in_blocks() -> None:
    (xx, xy), (yx, yy) = engine.hessian(sample("product"), wrt=("x", "y"))(3.0, 0.5)
    assert xx == 0.0 and xy == yx == pytest.approx(np.cos(0.5), rel=1e-15)
    assert yy == pytest.approx(-3 * np.sin(0.5), rel=1e-15)
