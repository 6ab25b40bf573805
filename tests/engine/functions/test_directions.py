"""Many tangents and cotangents at once against one after the other, in both layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine

X = np.array([0.5, -1.0, 2.0])
RNG = np.random.default_rng(0)


def _moved(rows: Any, layout: str) -> Any:
    return np.moveaxis(rows, 0, -1) if layout == "soa" else rows


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize(("count", "width"), [(1, "auto"), (5, 2), (7, "auto"), (40, 16), (0, "auto")])
def test_tangents(count: int, width: Any, layout: str) -> None:
    """Two outputs, one of them inout, of which one argument is a scalar."""
    kernel, dx, dt = sample("scale"), RNG.normal(size=(count, 3)), RNG.normal(size=count)
    out, got = engine.multi_jvp(kernel, (X, 3.0), (_moved(dx, layout), dt), layout=layout, width=width)
    np.testing.assert_array_equal(out[1], kernel(X, 3.0)[1])
    for k in range(2):
        assert got[k].shape == ((count, 3) if layout == "aos" else (3, count))
        for j in range(count):
            lane = got[k][j] if layout == "aos" else got[k][:, j]
            want = engine.jvp(kernel, (X, 3.0), (dx[j], float(dt[j])))[1][k]
            np.testing.assert_allclose(lane, want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize(("count", "width"), [(1, "auto"), (5, 2), (40, "auto")])
def test_cotangents(count: int, width: Any, layout: str) -> None:
    kernel, w = sample("scale"), RNG.normal(size=(count, 3))
    _, pullback = engine.multi_vjp(kernel, X, 3.0, layout=layout, width=width)
    gx, gdt = pullback((None, _moved(w, layout)))
    assert gdt.shape == (count,)
    _, single = engine.vjp(kernel, X, 3.0)
    for j in range(count):
        want_x, want_dt = single((None, w[j]))
        np.testing.assert_allclose(gx[j] if layout == "aos" else gx[:, j], want_x, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(gdt[j], want_dt, rtol=1e-14)


def test_one_argument_and_one_output() -> None:
    """`wrt` by name gives an array, as in vjp; inactive arguments may have no tangents."""
    kernel = sample("cubes")
    value, pullback = engine.multi_vjp(kernel, X, 2.0, wrt="x")
    assert value == kernel(X, 2.0)
    np.testing.assert_allclose(pullback(np.array([1.0, 2.0]))[1], 2 * engine.grad(kernel)(X, 2.0))
    _, tangents = engine.multi_jvp(kernel, (X, 2.0), (np.eye(3), None))
    np.testing.assert_allclose(tangents, engine.grad(kernel)(X, 2.0))


def test_directions_that_do_not_fit() -> None:
    kernel = sample("scale")
    with pytest.raises(irgrad.ShapeError, match=r"wanted \(N, 3\)"):
        engine.multi_jvp(kernel, (X, 3.0), (np.ones(3), None))
    with pytest.raises(irgrad.ShapeError, match=r"wanted \(3, N\)"):
        engine.multi_jvp(kernel, (X, 3.0), (np.ones((2, 3)), None), layout="soa")
    with pytest.raises(irgrad.ShapeError, match="no single number"):
        engine.multi_jvp(kernel, (X, 3.0), (np.ones((2, 3)), np.ones(4)))
    with pytest.raises(irgrad.ShapeError, match="no single number"):
        engine.multi_jvp(kernel, (X, 3.0), (None, None))
    with pytest.raises(irgrad.DTypeError, match="float32"):
        engine.multi_jvp(kernel, (X, 3.0), (np.ones((2, 3), np.float32), None))
    with pytest.raises(irgrad.SignatureError, match="got 1 tangents for 2"):
        engine.multi_jvp(kernel, (X, 3.0), (np.ones((2, 3)),))
    with pytest.raises(irgrad.SignatureError, match="got 1 cotangents for 2"):
        engine.multi_vjp(kernel, X, 3.0)[1]((np.ones((2, 3)),))
    with pytest.raises(irgrad.SignatureError, match="no layout"):
        engine.multi_vjp(kernel, X, 3.0, layout="rows")
