"""Rules of the user under jax.grad, jit, vmap, jacobians and Hessians."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.engine.functions.strips import OneLane
from irgrad.rules import Batched, Const, Duplicated, Ptr, SoA, extern, f64, foreign, layer, rule

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


@pytest.mark.long
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


SOLVER = """
void solve(const double *x, double *out, long n) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }
void whole(const double *x, double *out, long n) { solve(x, out, n); }
void solve_reverse(const double *x, double *x_d, const double *out, double *out_d, long n, long lanes) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j < lanes; j++) {
      x_d[i * lanes + j] += 10 * x[i] * out_d[i * lanes + j];
      out_d[i * lanes + j] = 0;
    }
  x_d[0] += 1000;
}
void solve_all(const double *x, double *out, long n, long samples) { solve(x, out, n * samples); }
void solve_reverse_all(const double *x, double *x_d, const double *out, double *out_d, long n, long samples) {
  for (long i = 0; i < n * samples; i++) { x_d[i] += 30 * x[i] * out_d[i]; out_d[i] = 0; }
  x_d[0] += 1000;
}
"""


def test_rules_for_all_directions_and_all_samples(tmp_path: Any, recwarn: pytest.WarningsRecorder) -> None:
    """One call for all lanes adds 1000 to the first element of the first lane alone."""
    path = tmp_path / "solver.c"
    path.write_text(SOLVER)
    whole = irgrad.load(path).kernel("whole", "void(f64[n] x, out f64[n] out, i64 n)")
    first = np.zeros((3, 3))
    first[0, 0] = 1000
    each = Batched[Duplicated[Ptr[f64]], SoA]
    with layer():
        foreign(extern("solve", "void(f64[n] x, out f64[n] out, i64 n)"), reverse="solve_reverse", width="any")
        foreign("solve", each, each, Const, primal="solve_all", reverse="solve_reverse_all")
        np.testing.assert_allclose(jax.jit(jax.jacrev(whole))(X), np.diag(10 * X) + first)
        xs = np.linspace(-1, 1, 60).reshape(20, 3)
        found = np.asarray(jax.vmap(lambda x: jax.vjp(whole, x)[1](jnp.ones(3))[0])(xs))
        thousands = np.round(found / 1000)
        np.testing.assert_allclose(found - 1000 * thousands, 30 * xs, atol=1e-10)
        assert thousands[0, 0] == 1 and thousands.sum() < 5
    assert not [w for w in recwarn if issubclass(w.category, OneLane)]


def test_directions_that_share_no_run(tmp_path: Any) -> None:
    """Extents that are not known: a rule for one direction is not run for each of several."""
    path = tmp_path / "solver.c"
    path.write_text(SOLVER)
    whole = irgrad.load(path).kernel("whole", "void(f64[n] x, out f64[n] out, i64 n)")
    with layer():

        @rule("solve", mode="reverse")
        def _(ctx: Any, x: Any, out: Any, n: Any) -> None:
            with ctx.for_range(n) as i:
                x.d[i] += 20.0 * x.saved(n)[i] * out.d[i]
                out.d[i] = 0.0

        with pytest.warns(OneLane, match="`whole` run one after the other"):
            np.testing.assert_allclose(jax.jacrev(whole)(X), np.diag(20 * X))
