"""Jacobians and Hessians against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.functions import jacobians

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


COUPLED = """
#include <math.h>
void coupled(const double *x, const double *a, double *y, float *z, long n) {
    double s = a[0];
    for (long i = 0; i < n; i++) { s = sin(s) + x[i] * a[1]; y[i] = s * x[(i * 3) % n]; }
    z[0] = (float)s; z[1] = (float)(s * s);
}
double chained(const double *x, long n) {
    double s = 1;
    for (long i = 0; i < n; i++) s = sin(s) + x[i] * x[i] * x[(i * 7) % n];
    return s;
}
"""


@pytest.mark.parametrize("width", [2, 3, 8, "auto"])
def test_every_width_gives_the_same(width: object) -> None:
    """Several arguments and outputs of two precisions in one strip; the last strip is not full."""
    library = irgrad.load(COUPLED)
    kernel = library.kernel("coupled", "void(f64[n] x, f64[2] a, out f64[n] y, out f32[2] z, i64 n)")
    x, a = np.linspace(0.1, 1.0, 70), np.array([0.3, 0.7])
    for jacobian in (engine.jacfwd, engine.jacrev):
        want = jacobian(kernel, wrt=("x", "a"), width=1)(x, a)
        got = jacobian(kernel, wrt=("x", "a"), width=width)(x, a)  # type: ignore[arg-type]
        for row, right in zip(got, want, strict=True):
            for block, correct in zip(row, right, strict=True):
                assert block.shape == correct.shape and block.dtype == correct.dtype
                bound = 1e-6 if block.dtype == np.float32 else 1e-13
                np.testing.assert_allclose(block, correct, rtol=bound, atol=1e-13)
    scalar = library.kernel("chained", "f64(f64[n] x, i64 n)")
    want = engine.hessian(scalar, width=1)(x)
    np.testing.assert_allclose(engine.hessian(scalar, width=width)(x), want, rtol=1e-12, atol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(want, want.T, rtol=1e-12, atol=1e-12)


def test_a_jacobian_of_nothing() -> None:
    """No elements, no directions."""
    (moved, square) = engine.jacfwd(sample("scale"), wrt="x")(np.empty(0), 3.0)
    assert moved.shape == square.shape == (0, 0)
    assert engine.jacrev(sample("scale"), wrt="x")(np.empty(0), 3.0)[0].shape == (0, 0)


def test_jacobian_takes_the_mode_with_fewer_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = sample("cubes"), sample("scale")
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(engine.jacobian(few)(x, 2.0), engine.jacfwd(few)(x, 2.0), rtol=1e-15)
    wide, tall = engine.jacobian(many, wrt="x")(x, 3.0), engine.jacfwd(many, wrt="x")(x, 3.0)
    np.testing.assert_allclose(wide[0], tall[0], rtol=1e-15)
    used: list[str] = []
    for name in ("jacfwd", "jacrev"):
        made = getattr(jacobians, name)
        noted = lambda *a, made=made, name=name, **k: lambda *x: (used.append(name), made(*a, **k)(*x))[1]  # noqa: E731
        monkeypatch.setattr(jacobians, name, noted)
    engine.jacobian(few)(x, 2.0)
    engine.jacobian(few, wrt="a")(x, 2.0)
    assert used == ["jacrev", "jacfwd"]
