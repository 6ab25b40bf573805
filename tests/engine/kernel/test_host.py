"""Rules whose body is Python on whole buffers: values, exceptions, and where they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import jvp, vjp
from irgrad.rules import extern, layer, rule
from irgrad.rules.errors import MissingRuleError, RuleError, Unsupported

SOURCE = """
#include <stdlib.h>
void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }
double weighted(double a, double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) { x[i] *= a; s += x[i]; }
  return s;
}
double total(const double *x, long n, double *out) { squares(x, n, out); return out[0] + out[n - 1]; }
double twice(const double *x, long n, double *out) {
  double s = 0;
  for (long k = 0; k < n; k++) { squares(x, n, out); s += out[k]; }
  return s;
}
double inner(const double *x, long n) {
  double *o = malloc(2 * n * sizeof *o), s = 0;
  squares(x, n, o); squares(o, n, o + n);
  for (long i = 0; i < n; i++) s += o[n + i] * (i + 1);
  free(o);
  return s;
}
double dot(const double *u, const double *v, const double *a, const double *b, long n) {
  double s = *a * *b;
  for (long i = 0; i < n; i++) s += u[i] * v[i];
  return s;
}
double norm(const double *x, long n) { return dot(x, x + 1, x, x + n - 2, n - 1) + x[0]; }
double mixed(double a, double *x, int n) { double s = weighted(a * a, x, n); x[0] = 3 * x[0]; return s * s; }
"""
X = np.array([0.5, -1.5, 2.0])
SQUARES = "void(f64[n] x, i64 n, out f64[n] out)"


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("host") / "host.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _define_squares(lib: Any, host: Any = True) -> None:
    @rule(lib.kernel("squares", SQUARES), mode="reverse", host=host)
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        assert (ctx.mode, x.active, out.shape, int(n)) == ("reverse", True, (3,), 3)
        x.d += 2.0 * x.saved * out.d

    @rule(lib.kernel("squares", SQUARES), mode="forward", host=host)
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        out.d = 2.0 * x.saved * x.d


def test_arrays_in_both_modes(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n, out f64[n] out)")
    with layer():
        _define_squares(lib)
        np.testing.assert_allclose(vjp(total, X)[1]((1.0, np.zeros(3)))[0], [1.0, 0.0, 4.0])
        np.testing.assert_allclose(vjp(total, X)[1]((0.0, np.ones(3)))[0], 2 * X)
        _, (value, arrays) = jvp(total, (X,), (np.ones(3),))
        assert value == 5.0
        np.testing.assert_allclose(arrays, 2 * X)


def test_numbers_results_and_memory_in_place(lib: Any) -> None:
    mixed = lib.kernel("mixed", "f64(f64 a, inout f64[n] x, i32 n)")
    seeds = (1.0, np.array([0.1, 0.2, 0.3]))
    expected = vjp(mixed, 0.7, X)[1](seeds)
    moves = (0.3, np.cos(X))
    expected_moves = jvp(mixed, (0.7, X), moves)[1]
    with layer():
        extern("weighted", "f64(f64 a, inout f64[n] x, i32 n)")

        @rule("weighted", mode="reverse", host=True)
        def _(ctx, a, x, n, *, y):  # type: ignore[no-untyped-def]
            assert y == pytest.approx(float(a) * x.saved.sum())
            np.testing.assert_allclose(x.result, float(a) * x.saved)
            seed = x.d + y.d
            a.d += float(seed @ x.saved)
            x.d = float(a) * seed

        @rule("weighted", mode="forward", host=True)
        def _(ctx, a, x, n):  # type: ignore[no-untyped-def]
            x.d = float(a) * x.d + a.d * x.saved
            ctx.result.d = x.d.sum()

        for got, wanted in zip(vjp(mixed, 0.7, X)[1](seeds), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)
        for got, wanted in zip(jvp(mixed, (0.7, X), moves)[1], expected_moves, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_exceptions_are_those_of_the_call(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule(lib.kernel("squares", SQUARES), mode="reverse", host=True)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError("from the body")

        pull = vjp(total, X)[1]
        with pytest.raises(ZeroDivisionError, match="from the body"):
            pull((1.0, np.zeros(3)))
        with pytest.raises(ZeroDivisionError):  # and again: nothing is left over
            pull((1.0, np.zeros(3)))


def test_arrays_that_a_rule_keeps_stay_as_they_were(lib: Any) -> None:
    """The memory that they show is freed when the kernel returns."""
    inner, kept, weights = lib.kernel("inner", "f64(f64[n] x, i64 n)"), [], np.arange(1.0, 4.0)

    def keep(*arrays: Any) -> None:
        found = [getattr(array, name) for array in arrays for name in ("value", "saved", "result", "d")]
        kept.append((found, [np.array(array) for array in found]))

    with layer():

        @rule(lib.kernel("squares", SQUARES), mode="reverse", host=True)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            x.d += 2.0 * x.saved * out.d
            keep(x, out)

        @rule(lib.kernel("squares", SQUARES), mode="forward", host=True)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            out.d = 2.0 * x.saved * x.d
            keep(x, out)

        for _again in range(2):
            np.testing.assert_allclose(irgrad.engine.grad(inner)(X), 4 * X**3 * weights)
            np.testing.assert_allclose(jvp(inner, (X,), (np.ones(3),))[1], np.sum(4 * X**3 * weights))
    assert len(kept) == 8
    for found, copies in kept:
        np.testing.assert_array_equal(found, copies)
    np.testing.assert_array_equal(kept[0][0][-1], weights, "a cotangent, which the kernel consumes")


def test_arguments_that_are_kept_unread(lib: Any) -> None:
    """Nothing was looked at while the rule ran, which failed."""
    mixed, kept = lib.kernel("mixed", "f64(f64 a, inout f64[n] x, i32 n)"), []
    with layer():
        extern("weighted", "f64(f64 a, inout f64[n] x, i32 n)")

        @rule("weighted", mode="reverse", host=True)
        def _(ctx, a, x, n, *, y):  # type: ignore[no-untyped-def]
            kept.append((a, x, y))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            vjp(mixed, 0.5, X)[1]((1.0, np.ones(3)))
    a, x, y = kept[0]
    assert (float(a), a.d, y.d) == (0.25, 0.0, 2 * 0.25 * X.sum())
    np.testing.assert_array_equal(x.saved, X)
    np.testing.assert_array_equal(x.result, 0.25 * X)
    np.testing.assert_array_equal(x.d, [3.0, 1.0, 1.0])


def test_adjoints_that_overlap_are_one(lib: Any) -> None:
    """Two arrays of one memory, and numbers in it: each `+=` arrives."""
    norm = lib.kernel("norm", "f64(f64[n] x, i64 n)")
    expected = irgrad.engine.grad(norm)(X)
    with layer():
        extern("dot", "f64(f64[n] u, f64[n] v, f64& a, f64& b, i64 n)")

        @rule("dot", mode="reverse", host=True)
        def _(ctx, u, v, a, b, n, *, y):  # type: ignore[no-untyped-def]
            u.d += v.saved * y.d
            v.d += u.saved * y.d
            a.d += float(b) * y.d
            b.d += float(a) * y.d

        np.testing.assert_allclose(irgrad.engine.grad(norm)(X), expected, rtol=1e-14)


def test_loops_are_refused_unless_asked_for(lib: Any) -> None:
    twice = lib.kernel("twice", "f64(f64[n] x, i64 n, out f64[n] out)")
    with layer():
        _define_squares(lib)
        with pytest.raises(RuleError, match="called inside a loop") as caught:
            vjp(twice, X)[1]((1.0, np.zeros(3)))
        assert 'host="loops"' in caught.value.fix
        assert "host.c:" in caught.value.where
    with layer():
        _define_squares(lib, "loops")
        np.testing.assert_allclose(vjp(twice, X)[1]((1.0, np.zeros(3)))[0], 2 * X)


def test_extents_are_needed(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule("squares", mode="reverse", host=True)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            pass

        with pytest.raises(RuleError, match="the extents of `x` are not known"):
            vjp(total, X)[1]((1.0, np.zeros(3)))


def test_second_order_batches_and_jax_are_refused(lib: Any) -> None:
    from irgrad.engine.kernel.host import refuse_hosted

    total = lib.kernel("total", "f64(f64[n] x, i64 n, out f64[n] out)")
    squares = lib.kernel("squares", SQUARES)
    with layer():
        _define_squares(lib)
        with pytest.raises(MissingRuleError, match="derivative of a host rule"):
            _ = total.primal.pullback((0, 3)).jvp_only((0, 1)).slots
        with pytest.raises(Unsupported, match="a host rule in JAX"):
            refuse_hosted(squares.primal.pullback((0, 2)).stage.text, "squares", "JAX")
    refuse_hosted(squares.primal.pullback((0, 2)).stage.text, "squares", "JAX")
