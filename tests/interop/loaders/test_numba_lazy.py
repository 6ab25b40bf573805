"""`@irgrad.jit` without a signature: a kernel for the types of each call, under JAX and for irgrad's own functions."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import irgrad
from irgrad import engine


@irgrad.jit
def weighted(x: Any, w: Any, scale: Any = 2.0) -> Any:
    """Weighted squares."""
    s = 0.0
    for i in range(x.shape[0]):
        s += scale * w[i] * x[i, 0] ** 2 + math.exp(x[i, 1])
    return s


X, W = np.random.default_rng(0).normal(size=(3, 2)), np.arange(1.0, 4)


def test_types_are_those_of_the_call() -> None:
    expected = 2 * W @ X[:, 0] ** 2 + np.exp(X[:, 1]).sum()
    np.testing.assert_allclose(weighted(X, W), expected, rtol=1e-14)
    before = dict(weighted.kernels)
    np.testing.assert_allclose(weighted(X[:2], w=W[:2], scale=1.0), W[:2] @ X[:2, 0] ** 2 + np.exp(X[:2, 1]).sum())
    assert weighted.kernels == before and weighted.__doc__ == "Weighted squares."
    single = weighted(X.astype(np.float32), W)
    np.testing.assert_allclose(single, expected, rtol=1e-6)
    assert len(weighted.kernels) == len(before) + 1


def test_layouts() -> None:
    wide = np.repeat(np.repeat(X, 2, 0), 3, 1)
    for given in (np.asfortranarray(X), wide[::2, ::3], X.T.copy().T):
        assert weighted(given, W) == weighted(X, W)
        np.testing.assert_array_equal(irgrad.grad(weighted)(given, W), irgrad.grad(weighted)(X, W))


def test_derivatives() -> None:
    gradient = irgrad.grad(weighted, wrt="w")(X, W)
    np.testing.assert_allclose(gradient, 2 * X[:, 0] ** 2, rtol=1e-14)
    value, by_x = irgrad.value_and_grad(weighted)(X, W)
    assert value == weighted(X, W)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(jax.grad(weighted))(X, W), by_x, rtol=1e-14)
        np.testing.assert_allclose(jax.vmap(jax.grad(weighted), (0, None))(X[None], W)[0], by_x, rtol=1e-14)


def test_every_function_of_the_arguments_takes_it() -> None:
    """Each against the same function of the kernel for these types; the default of `scale` counts."""
    kernel, given = weighted.kernel_for(X, W), (X, W, 2.0)
    for function in (engine.jacfwd, engine.jacrev, engine.jacobian, engine.hessian):
        expected = function(kernel, wrt="x")(*given)
        derivative = function(weighted, wrt="x")
        for _ in range(2):
            np.testing.assert_array_equal(derivative(X, w=W), expected)
    v = np.ones_like(X)
    np.testing.assert_array_equal(engine.hvp(weighted, (X, W), v), engine.hvp(kernel, given, v))
    np.testing.assert_array_equal(engine.hvp(weighted, wrt="w")((X, W), W), np.zeros(3))
    expected = engine.jvp(kernel, given, (v, None, 1.0))
    assert engine.jvp(weighted, given, (v, None, 1.0)) == expected == engine.jvp(weighted)(given, (v, None, 1.0))
    assert engine.jvp(weighted, (X, W), (v, None)) == engine.jvp(kernel, given, (v, None, None))
    for pullback in (engine.vjp(weighted, X, W)[1], engine.vjp(weighted)(X, W)[1]):
        for mine, his in zip(pullback(1.0), engine.vjp(kernel, *given)[1](1.0), strict=True):
            np.testing.assert_array_equal(mine, his)
    many = np.stack([v, 2 * v])
    np.testing.assert_array_equal(engine.multi_jvp(weighted, (X, W), (many, None))[1],
                                  engine.multi_jvp(kernel, given, (many, None, None))[1])  # fmt: skip
    np.testing.assert_array_equal(engine.multi_vjp(weighted, X, W, wrt="x")[1](np.ones(2)),
                                  engine.multi_vjp(kernel, *given, wrt="x")[1](np.ones(2)))  # fmt: skip
    assert engine.check(weighted, X, W).ok and engine.first_nonfinite(weighted, X, W) is None
    with pytest.raises(irgrad.SignatureError, match="tangents"):
        engine.jvp(weighted, (X, W), (v, None, 1.0, 1.0))
    unfinished: Any = engine.jvp
    with pytest.raises(irgrad.SignatureError):
        unfinished(weighted, (X, W))


def test_refusals() -> None:
    with pytest.raises(irgrad.SignatureError, match=r"(?s)types are those of each call.*kernel_for"):
        irgrad.hessian_sparse(weighted)
    with pytest.raises(irgrad.SignatureError, match=r"(?s)called with other arguments.*missing"):
        weighted(X)
    with pytest.raises(irgrad.SignatureError, match="an argument of type `<U1`"):
        weighted(X, "a")
    doubled = irgrad.jit(lambda x: 2 * x)
    assert doubled(3.0) == 6 and irgrad.grad(doubled)(3.0) == 2
    with pytest.raises(irgrad.SignatureError, match=r"(?s)returns `array.*out f64\[x_0\] y"):
        doubled(W)

    @irgrad.jit
    def written(x: Any) -> None:
        x[0] = 1.0

    with pytest.raises(irgrad.CompileError, match=r"(?s)readonly.*`inout`"):
        written(W)
