"""How many native calls a composition makes, and what partial evaluation, checkpoint and dead code leave of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import partial_eval as pe
from jax.test_util import check_grads
from shares import fast

import irgrad

jax.config.update("jax_enable_x64", True)

SOURCE = """
#include <math.h>
double f(const double *x, double a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += sin(a * x[i]) * x[(i + 1) % n] * x[i];
  return s;
}
void g(const double *x, const double *p, double *y, long n) {
  for (long i = 0; i < n; i++) y[i] = exp(-p[0] * x[i]) * x[(i + 1) % n] + p[1] * x[i] * x[i];
}
void step(double *x, double h, long n) { for (long i = 1; i < n; i++) x[i] += h * sin(x[i - 1]); }
double norm(const float *x, float *y, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) { y[i] = x[i] * 0.5f; s += (double)x[i] * x[i] * x[i]; }
  return s;
}
"""
LIBRARY = irgrad.load(SOURCE)
F = LIBRARY.kernel("f", "f64(f64[n] x, f64 a, i64 n)")
G = LIBRARY.kernel("g", "void(f64[n] x, f64[2] p, out f64[n] y, i64 n)")
STEP = LIBRARY.kernel("step", "void(inout f64[n] x, f64 h, i64 n)")
X, A, P = jnp.linspace(0.1, 1.2, 5), jnp.float64(0.7), jnp.array([0.3, 0.9])
XS = jnp.stack([X, 2 * X, X - 1])


def f(x: Any, a: Any) -> Any:
    return jnp.sum(jnp.sin(a * x) * jnp.roll(x, -1) * x)


def g(x: Any, p: Any) -> Any:
    return jnp.exp(-p[0] * x) * jnp.roll(x, -1) + p[1] * x * x


def step(x: Any, h: Any) -> Any:
    return jnp.stack(reduce(lambda rows, i: [*rows, x[i] + h * jnp.sin(rows[-1])], range(1, x.shape[0]), [x[0]]))


def _scan(k: Any, x: Any) -> Any:
    return jax.lax.scan(lambda c, _: (k(c, P) * 0.3, c.sum()), x, None, length=6)


def _twice(k: Any, policy: Any) -> Any:
    return jax.grad(lambda x: jax.checkpoint(lambda y: k(k(y, P), P), policy=policy)(x).sum())(X)


def _batched(k: Any) -> Any:
    return jax.value_and_grad(lambda x, a: jax.vmap(k, (0, None))(x, a).sum(), (0, 1))(XS, A)


def _value_and_pullback(k: Any) -> Any:
    y, pull = jax.vjp(k, X, P)
    return y, pull(X)


ALL = jax.checkpoint_policies.everything_saveable
# name: (composition, native calls in the compiled program)
SCALAR: dict[str, tuple[Callable[[Any], Any], int]] = {
    "value": (lambda k: k(X, A), 1),
    "value_and_grad": (lambda k: jax.value_and_grad(k, (0, 1))(X, A), 1),
    "jvp": (lambda k: jax.jvp(k, (X, A), (X, A)), 1),
    "vjp": (lambda k: jax.vjp(k, X, A)[1](A), 1),
    "linearize": (lambda k: jax.linearize(k, X, A)[1](X, A), 1),
    "vmap(value_and_grad)": (lambda k: jax.vmap(jax.value_and_grad(k, (0, 1)), (0, None))(XS, A), 1),
    "value_and_grad(vmap)": (_batched, 1),
    "hessian": (lambda k: jax.hessian(k)(X, A), 1),
    "jvp(grad)": (lambda k: jax.jvp(jax.grad(k), (X, A), (X, A)), 2),
    "cond": (lambda k: jax.grad(lambda x: jax.lax.cond(x[0] > 0, lambda x: k(x, A), lambda x: x.sum(), x))(X), 1),
}
VECTOR: dict[str, tuple[Callable[[Any], Any], int]] = {
    "jacfwd": (lambda k: jax.jacfwd(k)(X, P), 1),
    "jacrev": (lambda k: jax.jacrev(k, (0, 1))(X, P), 1),
    "jacfwd(vmap)": (lambda k: jax.jacfwd(lambda x: jax.vmap(k, (0, None))(x, P))(XS), 1),
    "vmap(jacrev)": (lambda k: jax.vmap(jax.jacrev(k), (0, None))(XS, P), 1),
    "value and vjp": (_value_and_pullback, 2),
    "grad of scan": (lambda k: jax.grad(lambda x: _scan(k, x)[0].sum())(X), 2),
    "jvp of scan": (lambda k: jax.jvp(lambda x: _scan(k, x), (X,), (X,)), 1),
    "checkpoint": (lambda k: _twice(k, None), 3),
    "checkpoint, all saved": (lambda k: _twice(k, ALL), 4),
    "linear_transpose": (
        lambda k: jax.linear_transpose(lambda p: jax.jvp(lambda q: k(X, q), (jnp.ones(2),), (p,))[1], P)(X),
        1,
    ),
}


def _same(composition: Callable[[Any], Any], kernel: Any, reference: Any) -> None:
    got, wanted = jax.tree.leaves(composition(kernel)), jax.tree.leaves(composition(reference))
    assert len(got) == len(wanted) > 0
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _calls(composition: Callable[[], Any]) -> int:
    text = jax.jit(composition).lower().compile().as_text()
    assert text is not None
    return text.count('custom_call_target="irgrad.')


@pytest.mark.parametrize("name", fast(2, SCALAR))
def test_scalar_kernels(name: str) -> None:
    composition, calls = SCALAR[name]
    _same(composition, F, f)
    assert _calls(lambda: composition(F)) == calls


@pytest.mark.parametrize("name", fast(2, VECTOR))
def test_vector_kernels(name: str) -> None:
    composition, calls = VECTOR[name]
    _same(composition, G, g)
    assert _calls(lambda: composition(G)) == calls


def test_inout_in_a_loop() -> None:
    def composition(k: Any) -> Any:
        return jax.grad(lambda x: jax.lax.scan(lambda c, _: (k(c, 0.1), None), x, None, length=6)[0].sum())(X)

    _same(composition, STEP, step)


def test_values_of_other_outputs_and_mixed_precision() -> None:
    """A scalar result beside an array one, f32 arguments and an f64 result."""
    kernel = LIBRARY.kernel("norm", "f64(f32[n] x, out f32[n] y, i64 n)")
    x = jnp.array([1.0, -2.0, 0.5], jnp.float32)
    gradient = jax.grad(lambda x: kernel(x)[0])(x)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient, 3 * x * x, rtol=1e-6)
    moved, halves = jax.jvp(kernel, (x,), (jnp.ones_like(x),))[1]
    assert (moved.dtype, halves.dtype) == (jnp.float64, jnp.float32)
    np.testing.assert_allclose(moved, 3 * jnp.sum(x * x), rtol=1e-6)
    np.testing.assert_allclose(halves, [0.5, 0.5, 0.5])


@pytest.mark.long
def test_third_order_and_check_grads() -> None:
    _same(lambda k: jax.jit(jax.jacfwd(jax.hessian(k)))(X, A), F, f)
    check_grads(F, (X, A), order=2, atol=1e-5, rtol=1e-5)
    check_grads(G, (X, P), order=2, atol=1e-5, rtol=1e-5)
    check_grads(lambda x: STEP(x, 0.1), (X,), order=2, atol=1e-5, rtol=1e-5)


def test_dead_tangents_and_dead_values_are_not_computed() -> None:
    jaxpr = jax.make_jaxpr(lambda x: jax.jvp(lambda x: G(x, P), (x,), (x,)))(X)
    for used, spec in (([True, False], "D0[g]"), ([False, True], "D1[g]")):
        left, _ = pe.dce_jaxpr(jaxpr.jaxpr, used)
        assert str(left).count("foreign_call") == 1 and f"spec={spec}" in str(left)
    left, _ = pe.dce_jaxpr(jaxpr.jaxpr, [False, False])
    assert "foreign_call" not in str(left)


def test_a_donated_inout_argument_is_updated_in_place() -> None:
    x = jnp.linspace(0.0, 1.0, 1000)
    wanted = np.asarray(STEP(x, 0.1))
    kept = jax.jit(lambda x: (STEP(x, 0.1), x))(x)
    np.testing.assert_array_equal(kept[0], wanted)
    np.testing.assert_array_equal(kept[1], x)  # used again: XLA makes the copy
    address = x.unsafe_buffer_pointer()
    moved = jax.jit(lambda x: STEP(x, 0.1), donate_argnums=0)(x)
    assert moved.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(moved, wanted)
