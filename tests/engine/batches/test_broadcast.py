"""Kernels of numbers over arrays: values, partials and cotangents against NumPy and differences, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.batches.broadcast import FEW, Broadcast

SOURCE = r"""
#include <math.h>
double cell(double x, double y, double a) { return x > 0.3 ? sin(x) * y * a : x * y; }
double kepler(double m, double e) {
    double E = m;
    for (int i = 0; i < 30; i++) E -= (E - e * sin(E) - m) / (1 - e * cos(E));
    return E;
}
float scaled(float x, int n) { return x * x * n; }
int count(double x) { return x > 0; }
double rows(const double *x, long n) { return x[0]; }
double two(double x, double *y) { *y = x; return x * x; }
"""
LIBRARY = ig.load(SOURCE)
X, Y = np.linspace(-1.0, 2.0, 5)[:, None], np.linspace(1.0, 2.0, 4)
M, E = np.linspace(0.2, 3.0, 4)[:, None], np.linspace(0.0, 0.5, 3)


def _cell(x: object, y: object, a: object) -> object:
    return np.where(np.asarray(x) > 0.3, np.sin(x) * y * a, np.multiply(x, y))  # type: ignore[call-overload]


def _differences(f: Broadcast, args: tuple[object, ...], position: int) -> object:
    up, down = ([a + s * 1e-5 if i == position else a for i, a in enumerate(args)] for s in (1, -1))
    return (f(*up) - f(*down)) / 2e-5


def test_values_broadcast_as_numpy_does() -> None:
    cell = ig.broadcast(LIBRARY.kernel("cell"))
    for args in ((X, Y, 1.5), (X, 2.0, Y), (0.7, Y, X[:2]), (X[None] + np.zeros((2, 1, 1)), Y, np.ones((1, 1))),
                 (0.5, 1.0, 2.0), (np.ones((1, 1)), 2.0, 1.0), (np.zeros((0, 1)), Y, 1.0)):  # fmt: skip
        got, want = cell(*args), _cell(*args)
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-15)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize(("name", "args"), [("cell", (X, Y, 1.5)), ("kepler", (M, E))])
def test_partials_and_pullbacks(name: str, args: tuple[object, ...], mode: str) -> None:
    f = ig.broadcast(LIBRARY.kernel(name), mode=mode)
    value, partials = f.value_and_partials(*args)
    np.testing.assert_allclose(value, f(*args), rtol=1e-14)
    weights = np.cos(np.arange(value.size)).reshape(value.shape)
    again, pullback = f.vjp(*args)
    np.testing.assert_array_equal(again, value)
    cotangents = pullback(weights)
    for position, (partial, cotangent) in enumerate(zip(partials, cotangents, strict=True)):
        want = _differences(f, args, position)
        np.testing.assert_allclose(partial, want, rtol=1e-8, atol=1e-9)
        shape = np.shape(args[position])
        assert cotangent.shape == shape
        sums = weights * partial
        axes = {(5, 1): 1, (4, 1): 1, (4,): 0, (3,): 0, (): (0, 1)}[shape]
        np.testing.assert_allclose(cotangent, sums.sum(axis=axes).reshape(shape), rtol=1e-13)


def test_the_mode_follows_from_loops_and_the_number_of_partials() -> None:
    straight, loops = ig.broadcast(LIBRARY.kernel("cell")), ig.broadcast(LIBRARY.kernel("kepler"))
    assert straight.straight and not straight.by_forward_passes(1)
    assert not loops.straight and loops.by_forward_passes(2) and not loops.by_forward_passes(FEW + 1)
    assert ig.broadcast(LIBRARY.kernel("cell"), mode="forward").by_forward_passes(99)


def test_one_argument_and_integers() -> None:
    f = ig.broadcast(LIBRARY.kernel("scaled"))
    x, n = np.float32([[1.0], [2.0]]), np.int32([1, 2, 3])
    value, (partial,) = f.value_and_partials(x, n)
    assert value.dtype == np.float32
    np.testing.assert_allclose(partial, 2 * x * n)
    _, partial = ig.broadcast(LIBRARY.kernel("cell"), wrt="y").value_and_partials(X, Y, 2.0)
    np.testing.assert_allclose(partial, _cell(X, np.ones_like(Y), 2.0))
    assert ig.broadcast(LIBRARY.kernel("cell"), wrt="a").vjp(X, Y, 2.0)[1](np.ones((5, 4))).shape == ()
    assert "broadcast_cell" in repr(ig.broadcast(LIBRARY.kernel("cell")))


def test_threads_give_the_same_bits() -> None:
    x = np.random.default_rng(0).normal(size=(300, 1))
    runs = [ig.broadcast(LIBRARY.kernel("cell"), threads=n).vjp(x, x[:, 0], 0.3) for n in (1, 2, 4)]
    rows = [pullback(value) for value, pullback in runs]
    for row in rows[1:]:
        for a, b in zip(row, rows[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ig.SignatureError, match="`x` is an array"):
        ig.broadcast(LIBRARY.kernel("rows", "f64(f64[n] x, i64 n)"))
    with pytest.raises(ig.SignatureError, match="2 results"):
        ig.broadcast(LIBRARY.kernel("two", "f64(f64 x, out f64[] y)"))
    with pytest.raises(ig.ActivityError):
        ig.broadcast(LIBRARY.kernel("count"))
    with pytest.raises(ig.SignatureError, match="not a kernel"):
        ig.broadcast(np.sin)  # type: ignore[arg-type]
    cell = LIBRARY.kernel("cell")
    with pytest.raises(ig.SignatureError, match="mode"):
        ig.broadcast(cell, mode="sideways")
    with pytest.raises(ig.ShapeError, match=r"`x` \(5, 1\), `y` \(3, 3\)"):
        ig.broadcast(cell)(X, np.ones((3, 3)), 1.0)
    with pytest.raises(ig.ShapeError, match="cotangent"):
        ig.broadcast(cell).vjp(X, Y, 1.0)[1](np.ones(3))
    with pytest.raises(ig.DTypeError):
        ig.broadcast(cell)(X.astype(np.float32), Y, 1.0)
