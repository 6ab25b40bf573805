"""Compositions of JAX's transformations over a kernel agree with the same over jnp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

jax.config.update("jax_enable_x64", True)

POINT = (3.0, 0.5)
XS, YS = np.linspace(1, 2, 4), np.linspace(0, 1, 4)

COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda k: jax.jit(k)(*POINT),
    "grad": lambda k: jax.grad(k, (0, 1))(*POINT),
    "grad of one": lambda k: jax.grad(k, 1)(*POINT),
    "jit(grad)": lambda k: jax.jit(jax.grad(k))(*POINT),
    "value_and_grad": lambda k: jax.value_and_grad(k)(*POINT),
    "jvp": lambda k: jax.jvp(k, POINT, (1.0, 2.0)),
    "vjp": lambda k: jax.vjp(k, *map(jnp.float64, POINT))[1](jnp.float64(2.0)),
    "linearize": lambda k: jax.linearize(k, *POINT)[1](1.0, 2.0),
    "vmap, one": lambda k: jax.vmap(k, (0, None))(XS, 0.5),
    "vmap, both": lambda k: jax.vmap(k)(XS, YS),
    "vmap(vmap)": lambda k: jax.vmap(jax.vmap(k, (None, 0)), (0, None))(XS, YS),
    "vmap(grad)": lambda k: jax.vmap(jax.grad(k, (0, 1)), (None, 0))(3.0, YS),
    "grad(vmap)": lambda k: jax.grad(lambda x: jax.vmap(k, (None, 0))(x, YS).sum())(3.0),
    "hessian": lambda k: jax.hessian(k, (0, 1))(*POINT),
    "jacrev(jacrev)": lambda k: jax.jacrev(jax.jacrev(k, (0, 1)), (0, 1))(*POINT),
    "jacrev(jacfwd)": lambda k: jax.jacrev(jax.jacfwd(k, (0, 1)), (0, 1))(*POINT),
    "jacfwd(jacfwd)": lambda k: jax.jacfwd(jax.jacfwd(k, (0, 1)), (0, 1))(*POINT),
    "third order": lambda k: jax.grad(jax.grad(jax.grad(k, 1), 1), 1)(*POINT),
    "vmap(grad(grad))": lambda k: jax.vmap(jax.grad(jax.grad(k, 1), 1), (None, 0))(3.0, YS),
    "scan": lambda k: jax.grad(lambda x: jax.lax.scan(lambda c, y: (k(c, y), c), x, YS)[0])(3.0),
    "checkpoint": lambda k: jax.grad(jax.checkpoint(k), 1)(*POINT),
    "jit(vmap(hessian))": lambda k: jax.jit(jax.vmap(jax.hessian(k, 1)))(XS, YS),
}


def product(x: Any, y: Any) -> Any:
    return x * jnp.sin(y)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_scalar_kernel(name: str) -> None:
    kernel = sample("product")
    got = jax.tree.leaves(COMPOSITIONS[name](lambda x, y: kernel(jnp.asarray(x), jnp.asarray(y))))
    wanted = jax.tree.leaves(COMPOSITIONS[name](product))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


X = np.array([0.5, -1.0, 2.0])
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda k: jax.grad(k, (0, 1))(X, 2.0),
    "jit(grad)": lambda k: jax.jit(jax.grad(k))(X, 2.0),
    "hessian": lambda k: jax.hessian(k)(X, 2.0),
    "vmap(grad)": lambda k: jax.vmap(jax.grad(k), (0, None))(np.stack([X, 2 * X]), 2.0),
    "vmap(grad), axis 1": lambda k: jax.vmap(jax.grad(k), (1, 0))(np.stack([X, 2 * X], 1), np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array_kernel(name: str) -> None:
    kernel = sample("cubes")
    got = jax.tree.leaves(ARRAYS[name](lambda x, a: kernel(jnp.asarray(x), jnp.asarray(a))))
    wanted = jax.tree.leaves(ARRAYS[name](lambda x, a: a * jnp.sum(x**3)))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_several_outputs_and_inout() -> None:
    kernel, x = sample("scale"), jnp.asarray(X)
    for jacobian in (jax.jacfwd, jax.jacrev):
        moved, squares = jacobian(kernel)(x, 3.0)
        np.testing.assert_allclose(moved, 3 * np.eye(3), atol=1e-14)
        np.testing.assert_allclose(squares, np.diag(18 * X), atol=1e-13)


def test_integer_arguments_have_no_gradient() -> None:
    kernel, index = sample("gather"), jnp.array([0, 0, 2], jnp.int32)
    np.testing.assert_allclose(jax.grad(kernel)(jnp.asarray(X), index), [2.0, 0.0, 4.0], rtol=1e-14)


def test_single_precision() -> None:
    x = jnp.array([1.0, 2.0], jnp.float32)
    gradient = jax.jit(jax.grad(sample("halves")))(x)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient, x, rtol=1e-6)


def test_a_batch_is_one_call() -> None:
    kernel = sample("product")
    text = str(jax.make_jaxpr(jax.vmap(jax.grad(kernel), (0, None)))(XS, jnp.float64(0.5)))
    assert text.count("foreign_call") == 1
