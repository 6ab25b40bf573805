"""`irgrad.broadcast` under JAX: values, gradients of any order, and how many native calls there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad as ig

LIBRARY = ig.load(r"""
#include <math.h>
double cell(double x, double y, double a) { return x > 0.3 ? sin(x) * y * a : x * y; }
double power(double x, int n) { double p = 1; for (int i = 0; i < n; i++) p *= x; return p; }
""")


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def _args() -> tuple[Any, Any, Any]:
    return jnp.asarray(np.linspace(-1.0, 2.0, 5)[:, None]), jnp.asarray(np.linspace(1.0, 2.0, 4)), jnp.asarray(1.5)


def _cell(x: Any, y: Any, a: Any) -> Any:
    return jnp.where(x > 0.3, jnp.sin(x) * y * a, x * y)


def _calls(function: Any, *args: Any) -> int:
    return str(jax.make_jaxpr(function)(*args)).count("foreign_call[")


def _loss(f: Any) -> Any:
    return lambda *args: jnp.sum(jnp.tanh(f(*args)))


@pytest.mark.parametrize("mode", ["reverse", pytest.param("forward", marks=pytest.mark.long)])
def test_derivatives(mode: str) -> None:
    args, cell = _args(), ig.broadcast(LIBRARY.kernel("cell"), mode=mode)
    np.testing.assert_allclose(cell(*args), _cell(*args), rtol=1e-15)

    got = jax.jit(jax.grad(_loss(cell), argnums=(0, 1, 2)))(*args)
    for row, want in zip(got, jax.grad(_loss(_cell), argnums=(0, 1, 2))(*args), strict=True):
        assert row.shape == want.shape
        np.testing.assert_allclose(row, want, rtol=1e-12)
    tangents = jax.tree.map(jnp.cos, args)
    np.testing.assert_allclose(jax.jvp(cell, args, tangents)[1], jax.jvp(_cell, args, tangents)[1], rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_second_derivatives(mode: str) -> None:
    args, cell = _args(), ig.broadcast(LIBRARY.kernel("cell"), mode=mode)
    got, want = (jax.hessian(_loss(f), argnums=(0, 1))(*args) for f in (cell, _cell))
    for row, right in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(row, right, rtol=1e-10, atol=1e-12)


def test_a_gradient_is_one_native_call_and_its_reverse_pass_none() -> None:
    args, cell = _args(), ig.broadcast(LIBRARY.kernel("cell"))
    assert _calls(cell, *args) == 1
    assert _calls(jax.grad(lambda *args: cell(*args).sum(), argnums=(0, 1, 2)), *args) == 1
    _, pullback = jax.vjp(cell, *args)
    assert _calls(pullback, jnp.ones((5, 4))) == 0


def test_under_vmap_and_with_numbers() -> None:
    x, y, _ = _args()
    cell = ig.broadcast(LIBRARY.kernel("cell"))
    both = jnp.stack([y, 3 * y])
    np.testing.assert_allclose(jax.vmap(lambda y: cell(x, y, 2.0))(both), jax.vmap(lambda y: _cell(x, y, 2.0))(both))
    np.testing.assert_allclose(cell(jnp.asarray(0.5), 2.0, 1.0), _cell(0.5, 2.0, 1.0))
    np.testing.assert_allclose(jax.grad(cell)(jnp.asarray(0.5), 2.0, 1.0), jnp.cos(0.5) * 2)


def test_integers_have_no_partials() -> None:
    power = ig.broadcast(LIBRARY.kernel("power"))
    x, n = _args()[1], jnp.asarray([[1], [2], [3]], jnp.int32)
    np.testing.assert_allclose(power(x, n), x**n, rtol=1e-14)
    np.testing.assert_allclose(jax.grad(lambda x: power(x, n).sum())(x), (n * x ** (n - 1)).sum(0), rtol=1e-13)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ig.ShapeError, match="cannot be broadcast"):
        ig.broadcast(LIBRARY.kernel("cell"))(jnp.ones((2, 3)), jnp.ones(4), 1.0)
