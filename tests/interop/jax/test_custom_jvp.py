"""`interop.jax.as_custom_jvp`: rows of the tables and rules of the user as derivatives of pure JAX code."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle.math_functions import slope
from oracle.rule_checks import exact

from irgrad.interop.jax import as_custom_jvp
from irgrad.rules import Active, f32, f64, layer, rows, rule
from irgrad.rules.errors import RuleError


@pytest.fixture(scope="module", autouse=True)
def _wide() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize(
    ("key", "dtype"),
    [(key, np.float64) for key in "hypot pow powi atan2 erf lgamma fmax ldexp".split()]
    + [(key, np.float32) for key in "hypot erf powi".split()],
)
def test_gradients_are_the_partials(key: str, dtype: Any) -> None:
    import mpmath as mp

    row = rows()[key]
    args = [3 if c == "i" else dtype(0.6 + 0.5 * n) for n, c in enumerate(row.signature)]
    if key == "lgamma":
        args = [dtype(2.5)]
    function = as_custom_jvp(key)
    got = jax.jit(jax.grad(function, argnums=row.floats))(*args)
    with mp.workdps(70):
        wanted = [float(slope(key, exact(args), i)[0]) for i in row.floats]
    assert all(g.dtype == dtype for g in got)
    np.testing.assert_allclose(np.array(got, float), wanted, rtol=3e-6 if dtype is np.float32 else 1e-13)


def test_the_rule_is_used_and_not_what_jax_would_derive() -> None:
    with layer():

        @rule("mine", Active[f64])
        def _(x: Any, *, y: Any) -> Any:
            return 10 * x + y

        @rule("mine", Active[f32])
        def _(x: Any) -> Any:
            return 7.0

        mine = as_custom_jvp("mine", jnp.tanh)
    assert jax.grad(mine)(2.0) == pytest.approx(20 + np.tanh(2.0))
    assert jax.grad(mine)(jnp.float32(2.0)) == 7.0
    assert jax.grad(jax.grad(mine))(2.0) == pytest.approx(10 + 20 + np.tanh(2.0))  # the rule of y inside of the rule


def test_vmap_broadcasting_and_forward_mode() -> None:
    x, y = np.linspace(0.1, 2, 6).reshape(2, 3), np.array([0.3, -1.0, 2.0])
    hypot = as_custom_jvp("hypot")
    np.testing.assert_allclose(hypot(x, y), np.hypot(x, y))
    grads = jax.vmap(jax.vmap(jax.grad(hypot, (0, 1))), (0, None))(x, y)
    np.testing.assert_allclose(grads[0], x / np.hypot(x, y))
    np.testing.assert_allclose(grads[1], y / np.hypot(x, y))
    _, tangent = jax.jvp(hypot, (x, y), (np.ones((2, 3)), np.zeros(3)))
    np.testing.assert_allclose(tangent, x / np.hypot(x, y))


def test_kinks_are_those_of_the_tables() -> None:
    assert float(jax.grad(as_custom_jvp("fabs"))(0.0)) == 0.0
    assert float(jax.grad(as_custom_jvp("hypot"))(0.0, 0.0)) == 0.0
    assert float(jax.grad(as_custom_jvp("sqrt"))(0.0)) == np.inf
    assert float(jax.grad(as_custom_jvp("pow"), 1)(0.0, 0.5)) == 0.0  # the infinite partial in x takes no part


def test_several_results() -> None:
    value, tangent = jax.jvp(as_custom_jvp("sincos"), (0.4,), (2.0,))
    np.testing.assert_allclose(value, (np.sin(0.4), np.cos(0.4)))
    np.testing.assert_allclose(tangent, (2 * np.cos(0.4), -2 * np.sin(0.4)))


def test_what_cannot_be_says_why() -> None:
    with pytest.raises(RuleError, match="nothing says what `j0` computes in JAX"):
        as_custom_jvp("j0")
    with pytest.raises(RuleError, match="JAX has no function `j1`"):
        jax.grad(as_custom_jvp("j0", jnp.cos))(1.0)
    with pytest.raises(RuleError, match="there is no rule for `nothing_here`"):
        as_custom_jvp("nothing_here", jnp.sin)
    with layer():

        @rule("of_calls", mode="forward")
        def _(ctx: Any, x: Any) -> None: ...

        with pytest.raises(RuleError, match="there are no partials for `of_calls`"):
            jax.grad(as_custom_jvp("of_calls", jnp.sin))(1.0)
