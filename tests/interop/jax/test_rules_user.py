"""Rules of the user under jax.grad, jit, vmap, jacobians and Hessians."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.engine.strips import OneLane
from irgrad.rules import layer, rule

SOURCE = """
double cube(double x) { return x * x * x; }
void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }
double total(const double *x, long n) {
  double w[64], s = 0;
  squares(x, n, w);
  for (long i = 0; i < n; i++) s += cube(w[i]);
  return s;
}
"""
X = np.array([0.5, -1.25, 2.0])


@pytest.fixture(scope="module", autouse=True)
def _wide() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("jax") / "total.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _define(squares: Any) -> None:
    """Ten times the derivative of each: 100 times that of their composition."""

    @rule("cube")
    def _(x: Any) -> Any:
        return 30 * x * x

    @rule(squares, mode="reverse")
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        x.d += 20.0 * x.saved * out.d

    @rule(squares, mode="forward")
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        out.d = 20.0 * x.saved * x.d


def test_transformations(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n)")
    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    x = jnp.asarray(X)
    plain = 6 * X**5
    np.testing.assert_allclose(jax.grad(total)(x), plain)
    before = jax.jit(jax.grad(total))
    before(x)
    with layer():
        _define(squares)
        np.testing.assert_allclose(jax.grad(total)(x), 100 * plain)
        np.testing.assert_allclose(jax.jit(jax.grad(total))(x), 100 * plain)
        both = jax.vmap(jax.grad(total))(jnp.stack([x, 2 * x]))
        np.testing.assert_allclose(both, 100 * np.stack([plain, 32 * plain]))
        assert jax.jvp(total, (x,), (x,))[1] == pytest.approx(100 * plain @ X)
        with pytest.warns(OneLane, match="`squares` run one after the other"):
            np.testing.assert_allclose(jax.jacrev(squares)(x), np.diag(20 * X))
        np.testing.assert_allclose(jax.jacfwd(squares)(x), np.diag(20 * X))
        hessian = jax.hessian(lambda v: jnp.sum(squares(v) ** 2))(x)
        np.testing.assert_allclose(hessian, np.diag(2 * (20 * X) ** 2 + 2 * X**2 * 20))
        np.testing.assert_allclose(before(x), plain)  # what jit has traced keeps its rules
    np.testing.assert_allclose(jax.grad(total)(x), plain)


def test_rules_of_the_call_hold_when_it_is_compiled(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n)")
    x = jnp.asarray(X)
    with layer():
        _define(lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)"))
        lowered = jax.jit(jax.grad(total)).trace(x)
    np.testing.assert_allclose(lowered.lower().compile()(x), 600 * X**5)
