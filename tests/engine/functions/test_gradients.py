"""grad, value_and_grad, jvp, vjp, hvp against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine

X = np.array([0.5, -1.0, 2.0])


def test_scalars() -> None:
    dx, dy = engine.grad(sample("product"), wrt=("x", "y"))(3.0, 0.5)
    assert dx == pytest.approx(np.sin(0.5), rel=1e-15) and dy == pytest.approx(3 * np.cos(0.5), rel=1e-15)
    value, slope = engine.value_and_grad(sample("product"), argnums=1)(3.0, 0.5)
    assert (value, slope) == (sample("product")(3.0, 0.5), dy)


def test_arrays() -> None:
    value, (dx, da) = engine.value_and_grad(sample("cubes"), wrt=("x", "a"))(X, 2.0)
    np.testing.assert_allclose(dx, 6 * X**2, rtol=1e-15)
    assert (value, da) == (sample("cubes")(X, 2.0), sample("cubes")(X, 1.0))


def test_prepared_calls_reset_what_they_accumulate() -> None:
    prepared = engine.grad(sample("cubes")).prepare(X, 2.0)
    for _ in range(3):
        prepared()
        np.testing.assert_allclose(prepared.outputs[0], 6 * X**2, rtol=1e-15)


def test_jvp_and_vjp_of_several_outputs() -> None:
    v = np.array([1.0, 2.0, -1.0])
    out, moved = engine.jvp(sample("two"), (X,), (v,))
    np.testing.assert_allclose(moved[1], np.cos(X) * v, rtol=1e-14)
    assert moved[0] == 2.0 and moved[2] == pytest.approx(v[0] * X[2] + X[0] * v[2])
    again, pullback = engine.vjp(sample("two"), X)
    assert out[0] == again[0]
    (dx,) = pullback((1.0, None, 2.0))
    np.testing.assert_allclose(dx, np.array([1 + 2 * X[2], 1.0, 1 + 2 * X[0]]), rtol=1e-14)


def test_vjp_of_inout_leaves_its_argument_alone() -> None:
    x = X.copy()
    _, pullback = engine.vjp(sample("scale"), x, 3.0, wrt="x")
    for _ in range(2):
        np.testing.assert_allclose(pullback((np.ones(3), np.zeros(3))), [3.0, 3.0, 3.0])
    assert np.array_equal(x, X)


def test_hvp() -> None:
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(engine.hvp(sample("cubes"), (X, 2.0), v), 12 * X * v, rtol=1e-14)


def test_functions_of_functions() -> None:
    """`jvp`, `vjp` and `hvp` of a kernel alone are functions, as `grad` of it is."""
    kernel, v = sample("cubes"), np.array([1.0, 2.0, 3.0])
    for got, want in zip(engine.jvp(kernel)((X, 2.0), (v, None)), engine.jvp(kernel, (X, 2.0), (v, None)), strict=True):
        assert got == want
    np.testing.assert_array_equal(engine.hvp(kernel, wrt="x")((X, 2.0), v), engine.hvp(kernel, (X, 2.0), v))
    value, pullback = engine.vjp(kernel, wrt="a")(X, 2.0)
    assert value == kernel(X, 2.0) and pullback(1.0) == kernel(X, 1.0)
    with pytest.raises(irgrad.SignatureError, match="`tangents` is missing"):
        engine.hvp(kernel, (X, 2.0))
    with pytest.raises(irgrad.SignatureError, match="`primals` is missing"):
        engine.jvp(kernel, tangents=(v, None))
    with pytest.raises(irgrad.SignatureError, match="there is no argument `y`"):
        engine.hvp(kernel, wrt="y")  # before it is called


def test_tangents_that_do_not_fit() -> None:
    with pytest.raises(irgrad.ShapeError, match="tangent of `x` has shape"):
        engine.jvp(sample("cubes"), (X, 2.0), (np.ones(2), None))
    with pytest.raises(irgrad.DTypeError, match="tangent of `x` has dtype float32"):
        engine.jvp(sample("cubes"), (X, 2.0), (np.ones(3, np.float32), None))
    with pytest.raises(irgrad.SignatureError, match="got 1 tangents for 2 arguments"):
        engine.jvp(sample("cubes"), (X, 2.0), (np.ones(3),))


def test_not_a_kernel() -> None:
    with pytest.raises(irgrad.SignatureError, match="not a kernel"):
        engine.grad(len)  # type: ignore[arg-type]


def test_of_names_one_of_several_outputs() -> None:
    source = """
    double both(const double *x, double *square, double *pair, long n) {
        double s = 0, q = 0;
        for (long i = 0; i < n; i++) { s += x[i]; q += x[i] * x[i]; }
        *square = q; pair[0] = s; pair[1] = q;
        return s * q;
    }
    """
    kernel = irgrad.load(source).kernel("both", "f64(f64[n] x, out f64 square, out f64[2] pair, i64 n)")
    x = np.array([1.0, -2, 3])
    np.testing.assert_allclose(engine.grad(kernel, of="square")(x), 2 * x)
    np.testing.assert_allclose(engine.grad(kernel, of="return")(x), engine.grad(kernel)(x))
    value, gradient = engine.value_and_grad(kernel, of="square")(x)
    assert value == 14
    np.testing.assert_allclose(gradient, 2 * x)
    tree = kernel.tree({"x": "x"})
    np.testing.assert_allclose(engine.grad(tree, of="square")({"x": x})["x"], 2 * x)
    with pytest.raises(irgrad.SignatureError, match="squares"):
        engine.grad(kernel, of="squares")
    with pytest.raises(irgrad.ActivityError, match="`pair` is no floating-point number"):
        engine.grad(kernel, of="pair")
