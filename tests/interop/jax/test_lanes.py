"""Axes of tangents and cotangents alone: they become the width of one call, in strips when there are many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad.interop.jax.lanes import best_width

jax.config.update("jax_enable_x64", True)

SOURCE = """
#include <math.h>
void g(const double *x, const double *p, double *y, long n) {
  for (long i = 0; i < n; i++) y[i] = exp(-p[0] * x[i]) * x[(i + 1) % n] + p[1] * x[i] * x[i] * x[i];
}
"""
G = irgrad.load(SOURCE).kernel("g", "void(f64[n] x, f64[2] p, out f64[n] y, i64 n)")
P = jnp.array([0.3, 0.9])


def g(x: Any, p: Any) -> Any:
    return jnp.exp(-p[0] * x) * jnp.roll(x, -1) + p[1] * x**3


X = jnp.linspace(0.1, 1.2, 5)
LONG = jnp.linspace(-1.0, 1.0, 37)
T = jnp.stack([X, X * X, X - 1])


def _push(k: Any, x: Any) -> Any:
    return lambda t: jax.jvp(lambda x: k(x, P), (x,), (t,))[1]


def _pull(k: Any, x: Any) -> Any:
    return lambda w: jax.vjp(k, x, P)[1](w)


def _mixed(k: Any) -> Any:
    """Second derivatives along all pairs of two sets of directions."""
    second = lambda s, t: jax.jvp(lambda x: _push(k, x)(t), (X,), (s,))[1]  # noqa: E731
    return jax.vmap(jax.vmap(second, (None, 0)), (0, None))(T, T[:2])


def _mixed_reverse(k: Any) -> Any:
    """The gradient of a sum over directions: lanes of one group are summed in the transposition of another."""
    return jax.grad(lambda s: jnp.sum(jax.vmap(lambda t: jax.jvp(lambda x: _push(k, x)(t), (X,), (s,))[1])(T) ** 2))(X)


# name: (composition, calls in the compiled program, lanes in its jaxpr)
CASES: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "jacfwd": (lambda k: jax.jacfwd(k)(X, P), 1, "x8["),
    "jacfwd, two arguments": (lambda k: jax.jacfwd(k, (0, 1))(X, P), 1, "x8["),
    "jacrev": (lambda k: jax.jacrev(k, (0, 1))(X, P), 1, "x8["),
    "value and jacobian": (lambda k: (k(X, P), jax.jacfwd(k)(X, P)), 2, "x8["),
    "strips": (lambda k: jax.jacfwd(k)(LONG, P), 1, "x16["),
    "strips, reverse": (lambda k: jax.jacrev(k)(LONG, P), 2, "x16["),
    "pushed directions": (lambda k: jax.vmap(_push(k, X))(T), 1, "x4["),
    "pushed twice": (lambda k: jax.vmap(jax.vmap(_push(k, X)))(jnp.stack([T, 2 * T])), 1, "x8["),
    "pulled": (lambda k: jax.vmap(_pull(k, X))(T), 1, "x4["),
    "pulled from axis 1": (lambda k: jax.vmap(_pull(k, X), 1, 1)(T.T), 1, "x4["),
    "batch and lanes": (lambda k: jax.vmap(lambda x: jax.vmap(_push(k, x))(T))(T), 1, "x4["),
    "batch inside of lanes": (lambda k: jax.vmap(lambda t: jax.vmap(lambda x: _push(k, x)(t))(T))(T), 1, "x4["),
    "hessian": (lambda k: jax.hessian(k)(X, P), 1, "x8x4["),
    "mixed directions": (_mixed, 1, "x2x4["),
    "mixed directions, reverse": (_mixed_reverse, 2, "x4["),
    "jacrev(jacfwd)": (lambda k: jax.jacrev(jax.jacfwd(k))(X, P), 1, ""),
    "jacfwd(jacrev)": (lambda k: jax.jacfwd(jax.jacrev(k))(X, P), 1, "x8x4["),
    "jacrev(jacrev)": (lambda k: jax.jacrev(jax.jacrev(k))(X, P), 1, ""),
    "third": (lambda k: jax.jacfwd(jax.jacfwd(jax.jacfwd(k)))(X, P), 1, "x8x4["),
}


@pytest.mark.parametrize("name", fast(6, CASES))
def test_one_call_shares_the_primal(name: str) -> None:
    composition, calls, lanes = CASES[name]
    got, wanted = jax.tree.leaves(composition(G)), jax.tree.leaves(composition(g))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)
    assert lanes in str(jax.make_jaxpr(lambda: composition(G))())
    text = jax.jit(lambda: composition(G)).lower().compile().as_text()
    assert text is not None and text.count('custom_call_target="irgrad.') == calls


def test_widths_are_powers_of_two() -> None:
    """As many lanes as the engine would take, while the program has no more than 32 over all its groups."""
    assert [best_width(n) for n in (1, 2, 3, 5, 13, 16, 17, 1000)] == [1, 2, 4, 8, 16, 16, 16, 16]
    assert [best_width(5, others) for others in (4, 5, 8, 16, 32, 64)] == [8, 4, 4, 2, 1, 1]
    assert [best_width(1000, 1, 1 << bits) for bits in (16, 17, 18)] == [16, 8, 4]


@pytest.mark.parametrize("count", fast(1, [3, 13, 17]))
def test_any_number_of_directions(count: int) -> None:
    """Lanes that only fill a strip change nothing, also in lanes of lanes."""
    directions = jnp.asarray(np.random.default_rng(count).normal(size=(count, 5)))
    one = jax.jit(_push(G, X))
    np.testing.assert_allclose(jax.vmap(_push(G, X))(directions), [one(t) for t in directions], rtol=1e-13, atol=1e-13)
    back, pulled = jax.jit(_pull(G, X)), jax.vmap(_pull(G, X))(directions)
    for n, gradients in enumerate(pulled):
        np.testing.assert_allclose(gradients, [back(t)[n] for t in directions], rtol=1e-13, atol=1e-13)
    pairs = jnp.stack([directions, 2 * directions, directions - 1])
    twice = jax.vmap(jax.vmap(_push(G, X)))(pairs)
    np.testing.assert_allclose(twice, [[one(t) for t in row] for row in pairs], rtol=1e-13, atol=1e-13)


def test_nan_in_one_lane_stays_there() -> None:
    for count in (3, 13, 20):
        rows = jax.vmap(_push(G, X))(jnp.ones((count, 5)).at[1].set(jnp.nan))
        assert np.isnan(rows[1]).all() and np.isfinite(jnp.delete(rows, 1, 0)).all()
