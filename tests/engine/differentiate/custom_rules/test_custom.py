"""Rules with `ctx`: the same derivatives as those of the bodies that they replace, in loops, in place, both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import batch_grad, grad, hessian, jvp, vjp
from irgrad.rules import Active, Const, Duplicated, Known, Ptr, extern, f32, f64, foreign, layer, rule, stop_gradient
from irgrad.rules.errors import RuleError

SOURCE = """
#include <math.h>
void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }
double dot(int n, const double *x, int incx, const double *y, int incy) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i * incx] * y[i * incy];
  return s;
}
void axpy(int n, double a, const double *x, int incx, double *y, int incy) {
  for (int i = 0; i < n; i++) y[i * incy] += a * x[i * incx];
}
void scale(int n, double a, double *x) { for (int i = 0; i < n; i++) x[i] *= a; }
void scale_(const int *n, const double *a, double *x) { for (int i = 0; i < *n; i++) x[i] *= *a; }
void scalef(int n, float a, float *x) { for (int i = 0; i < n; i++) x[i] *= a; }
double power(double x, int n, int flag) { return flag == 7 ? pow(x, n) : 0 * x; }
void detach(double *x, long n) { for (long i = 0; i < n; i++) x[i] += 0; }

double energy(double *x, long n) {
  double w[100], s = 0;
  for (int k = 0; k < 3; k++) {
    squares(x, n, w);
    s += dot((int)n, x, 1, w, 1);
    for (long i = 0; i < n; i++) x[i] = 0.5 * w[i] + x[i];
  }
  return s;
}
double steps(double *x, double a, long n) {
  double s = 0;
  for (int k = 0; k < 3; k++) {
    scale((int)n, a + 0.1 * k, x);
    int m = (int)n - k;
    double b = a * x[0];
    scale_(&m, &b, x);
    b = 0;
    m = 99;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
  }
  return s;
}
float stepsf(float *x, float a, long n) {
  float s = 0;
  for (int k = 0; k < 2; k++) { scalef((int)n, a, x); for (long i = 0; i < n; i++) s += x[i] * x[i]; }
  return s;
}
double powers(double x, int m) { return power(x, m, 7) + power(x, 2, 7) + power(x, m, 5); }
double detached(double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) x[i] = x[i] * x[i];
  detach(x, n);
  for (long i = 0; i < n; i++) s += x[i] * (i + 1);
  return s;
}

double outer(double *x, long n, double a) { scale((int)n, a, x); return x[0] * x[n - 1]; }
void scale_reverse(int n, double a, double *a_d, double *x, double *x_d, void *tape) {
  double *old = tape;
  for (int i = 0; i < n; i++) { *a_d += old[i] * x_d[i]; x_d[i] *= a; }
}
static double room[10][64];
static int used;
void scale_augmented(int n, double a, double *x, double *x_d, void **tape) {
  double *copy = room[used++ % 10];
  for (int i = 0; i < n; i++) copy[i] = x[i];
  *tape = copy;
  scale(n, a, x);
}
void scale_forward(int n, double a, double a_d, double *x, double *x_d) {
  for (int i = 0; i < n; i++) x_d[i] = a * x_d[i] + a_d * x[i];
  scale(n, a, x);
}
"""
X = np.array([0.5, 1.0, -0.3])


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("custom") / "custom.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def _wave(like: Any, shift: float) -> Any:
    """Seeds of the shape and type of a value."""
    value = np.asarray(like)
    return np.asarray(np.cos(np.arange(value.size) + shift).reshape(value.shape), value.dtype)[()]


def _both(kernel: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Gradients and tangents of all arguments with fixed seeds."""
    out, pull = vjp(kernel, *args)
    seeds = tuple(_wave(o, 1.0) for o in out) if isinstance(out, tuple) else _wave(out, 1.0)
    _, tangents = jvp(kernel, args, tuple(_wave(a, 2.0) for a in args))
    return list(pull(seeds)), list(tangents) if isinstance(tangents, tuple) else [tangents]


def _same(kernel: Any, args: tuple[Any, ...], define: Callable[[], None], rtol: float = 1e-12) -> None:
    expected = _both(kernel, args)
    with layer():
        define()
        got = _both(kernel, args)
    for one, other in zip(got, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol)


def _define_squares(lib: Any) -> None:
    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")

    @rule(squares, mode="reverse")
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        x.d += 2.0 * x.saved * out.d

    @rule(squares, mode="forward")
    def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
        out.d = 2.0 * x.saved * x.d


def _define_scale(name: str, dtype: Any) -> None:
    @rule(name, mode="reverse", x=Duplicated[Ptr[dtype]])
    def _(ctx, n, a, x):  # type: ignore[no-untyped-def]
        old = x.saved(n)
        with ctx.for_range(n) as i:
            a.d += old[i] * x.d[i]
            x.d[i] = a * x.d[i]

    @rule(name, mode="forward", x=Duplicated[Ptr[dtype]])
    def _(ctx, n, a, x):  # type: ignore[no-untyped-def]
        old = x.saved(n)
        with ctx.for_range(0, n) as i:
            x.d[i] = a * x.d[i] + a.d * old[i]


def test_arrays_and_foreign_calls_in_a_loop(lib: Any) -> None:
    def define() -> None:
        _define_squares(lib)
        _define_dot()

    _same(lib.kernel("energy", "f64(inout f64[n] x, i64 n)"), (X,), define)


def _define_dot() -> None:
    @rule("dot", mode="reverse")
    def _(ctx, n, x, incx, y, incy):  # type: ignore[no-untyped-def]
        axpy = ctx.foreign("axpy", "void(i32, f64, f64*, i32, f64*, i32)")
        if x.active:
            axpy(n, ctx.result.d, y.saved(n * incy), incy, x.d, incx)
        if y.active:
            axpy(n, ctx.result.d, x.saved(n * incx), incx, y.d, incy)

    @rule("dot", mode="forward")
    def _(ctx, n, x, incx, y, incy):  # type: ignore[no-untyped-def]
        dot = ctx.foreign("dot")
        total = ctx.variable(0.0)
        if x.active:
            total.value += dot(n, x.d, incx, y, incy)
        if y.active:
            total.value += dot(n, x, incx, y.d, incy)
        ctx.result.d = total.value


def test_in_place_by_value_and_by_reference(lib: Any) -> None:
    def define() -> None:
        _define_scale("scale", f64)
        extern("scale_", "void(i32& n, f64& a, f64* x)")
        _define_scale("scale_", f64)

    _same(lib.kernel("steps", "f64(inout f64[n] x, f64 a, i64 n)"), (X, 0.8), define)


def test_single_precision(lib: Any) -> None:
    kernel = lib.kernel("stepsf", "f32(inout f32[n] x, f32 a, i64 n)")
    _same(kernel, (X.astype(np.float32), np.float32(0.8)), lambda: _define_scale("scalef", f32), rtol=1e-5)


def test_second_order_follows_from_the_calls(lib: Any) -> None:
    total = lib.kernel("outer", "f64(inout f64[n] x, i64 n, f64 a)")
    expected = hessian(total, wrt="a")(X, 0.7)
    with layer():
        _define_scale("scale", f64)
        np.testing.assert_allclose(hessian(total, wrt="a")(X, 0.7), expected, rtol=1e-12)


def test_literals_choose_the_rule_and_decide(lib: Any) -> None:
    seen = []

    def define() -> None:
        @rule("power", mode="reverse", flag=Const[Known[7]])
        def _(ctx, x, n, flag, *, y):  # type: ignore[no-untyped-def]
            seen.append((n.known, flag.known))
            if flag == 7:
                x.d += y.d * n * y / x

        @rule("power", mode="reverse", flag=Const[Known[5]])
        def _(ctx, x, n, flag):  # type: ignore[no-untyped-def]
            seen.append("five")

    powers = lib.kernel("powers")
    expected = grad(powers)(1.3, 3)
    with layer():
        define()
        assert grad(powers)(1.3, 3) == pytest.approx(expected, rel=1e-13)
    assert seen == [(False, True), (True, True), "five"]


def test_stop_gradient_clears_what_is_written(lib: Any) -> None:
    detached = lib.kernel("detached", "f64(inout f64[n] x, i64 n)")
    with layer():
        stop_gradient("detach")
        with pytest.raises(RuleError, match="memory of unknown extent"):
            vjp(detached, X)[1]((1.0, np.zeros(3)))
        extern("detach", "void(inout f64[n] x, i64 n)")
        (got,) = vjp(detached, X)[1]((1.0, np.ones(3)))
        np.testing.assert_array_equal(got, 0.0)
        assert jvp(detached, (X,), (np.ones(3),))[1][0] == 0.0


def test_functions_in_c_with_a_tape(lib: Any) -> None:
    kernel = lib.kernel("outer", "f64(inout f64[n] x, i64 n, f64 a)")

    def define() -> None:
        foreign("scale", augmented="scale_augmented", reverse="scale_reverse", forward="scale_forward")

    _same(kernel, (X, 0.7), define)


def test_a_wrong_prototype_is_printed(lib: Any) -> None:
    kernel = lib.kernel("outer", "f64(inout f64[n] x, i64 n, f64 a)")
    with layer():
        foreign("scale", reverse="scale_reverse")  # without the augmented function there is no tape
        with pytest.raises(RuleError) as caught:
            vjp(kernel, X, 0.7)[1]((1.0, np.zeros(3)))
    text = caught.value.render()
    assert "the reverse function `scale_reverse` has another prototype" in text
    assert "to fix  void scale_reverse(int a0, double a1, double a1_d" not in text
    assert "void scale_reverse(int a0, double a1, void *a1_d, void *a2, void *a2_d);" in text


ERRORS: list[tuple[Any, str, str]] = [
    (lambda ctx, n, a, x: None if n > 3 else 1, "decides with `if`", "ctx.when"),
    (lambda ctx, n, a, x: ctx.foreign("nowhere"), "prototype of `nowhere` is not known", "ctx.foreign"),
    (lambda ctx, n, a, x: ctx.foreign("axpy", "void(f64*)"), "prototype of `axpy` is another", "give the prototype"),
    (lambda ctx, n, a, x: ctx.foreign("f", "void(f32*)")(x.d), "argument 0 of `f` is memory of", "astype(f32)"),
    (lambda ctx, n, a, x: ctx.foreign("f", "void(f64*)")(n, n), "called with 2 arguments", "one argument for each"),
    (lambda ctx, n, a, x: ctx.foreign("f", "void(f64 a)")(x), "argument 0 of `f` is a pointer", "pass what"),
    (lambda ctx, n, a, x: float(a), "the number behind a traced value", "for_range"),
]


@pytest.mark.parametrize(("body", "what", "fix"), ERRORS, ids=[e[1] for e in ERRORS])
def test_messages(lib: Any, body: Any, what: str, fix: str) -> None:
    kernel = lib.kernel("outer", "f64(inout f64[n] x, i64 n, f64 a)")
    with layer():
        rule("scale", mode="reverse")(body)
        with pytest.raises(RuleError) as caught:
            vjp(kernel, X, 0.7)[1]((1.0, np.zeros(3)))
        assert what in caught.value.what
        assert fix in caught.value.fix


def test_derivatives_that_the_module_only_declares(tmp_path: Any) -> None:
    """They are linked from elsewhere, under their own name."""
    path = tmp_path / "declared.c"
    path.write_text("""double outside(const double *x) { return 3 * x[0]; }
    void outside_reverse(const double *x, double *x_d, double y_d);
    void unused(double *x) { outside_reverse(x, x, 0); }
    double entry(double *x) { return outside(x); }""")
    entry = irgrad.load(path).kernel("entry", "f64(f64[1] x)")
    with layer():
        foreign("outside", reverse="outside_reverse")
        text = entry.primal.pullback((0, 1)).stage.text
    assert "@outside_reverse(ptr" in text and "@outside_reverse." not in text


def test_many_directions_share_the_primal(lib: Any) -> None:
    from irgrad.engine import jacfwd, jacrev

    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    with layer():
        _define_squares(lib)
        for jacobian in (jacfwd, jacrev):
            np.testing.assert_allclose(jacobian(squares, width=4)(X), np.diag(2 * X))
        assert ".pullback4x." in squares.primal.pullback((0, 2), 4).stage.name


NET = """
#include <stdlib.h>
#include <string.h>
void gemv(int m, int n, const double *A, const double *x, double *y) {
  for (int i = 0; i < m; i++) { double s = 0; for (int j = 0; j < n; j++) s += A[i * n + j] * x[j]; y[i] = s; }
}
void gemv_t(int m, int n, const double *A, const double *x, double *y) {
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) y[j] += A[i * n + j] * x[i];
}
void ger(int m, int n, const double *x, const double *y, double *A) {
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) A[i * n + j] += x[i] * y[j];
}
double net(const double *A, const double *B, const double *x, double *out, long m, long n) {
  double *h = malloc(m * 8), *g = malloc(n * 8), *k = malloc(n * 8);
  gemv(m, n, A, x, h);
  gemv(n, m, B, h, g);
  memcpy(k, g, n * 8);
  for (long i = 0; i < n; i++) k[i] *= g[i];
  gemv(m, n, A, k, h);
  for (long i = 0; i < m; i++) out[i] = h[i];
  double r = h[0] * h[0];
  free(h); free(g); free(k);
  return r;
}
"""


def test_memory_that_only_ruled_functions_touch(tmp_path: Any) -> None:
    """Its elements are known from the types of the rule; the hessian goes through the calls that the rule makes."""
    source = tmp_path / "net.c"
    source.write_text(NET)
    net = irgrad.load(source).kernel("net", "f64(f64[m,n] A, f64[n,m] B, f64[n] x, out f64[m] out, i64 m, i64 n)")
    a, b, x = np.cos(np.arange(6.0)).reshape(3, 2), np.sin(np.arange(6.0)).reshape(2, 3), np.array([0.3, -0.8])

    def define() -> None:
        @rule("gemv", mode="reverse", y=Duplicated[Ptr[f64]])
        def _(ctx, m, n, A, x, y):  # type: ignore[no-untyped-def]
            if x.active:
                ctx.foreign("gemv_t", "void(i32, i32, f64*, f64*, f64*)")(m, n, A.saved(m * n), y.d, x.d)
            if A.active:
                ctx.foreign("ger", "void(i32, i32, f64*, f64*, f64*)")(m, n, y.d, x.saved(n), A.d)
            ctx.zero(y.d, m)

        @rule("gemv", mode="forward", y=Duplicated[Ptr[f64]])
        def _(ctx, m, n, A, x, y):  # type: ignore[no-untyped-def]
            gemv, part = ctx.foreign("gemv"), ctx.temporary(m)
            ctx.zero(y.d, m)
            pairs = [(A.d, x)] if A.active else []
            for matrix, vector in [*pairs, *([(A, x.d)] if x.active else [])]:
                gemv(m, n, matrix, vector, part)
                with ctx.for_range(m) as i:
                    y.d[i] += part[i]

    expected = hessian(net, wrt="x")(a, b, x)
    _same(net, (a, b, x), define)
    with layer():
        define()
        np.testing.assert_allclose(hessian(net, wrt="x")(a, b, x), expected, rtol=1e-12)


BATCHED_SOURCE = """
double inner(const double *x, long n, double s) {
  double t = 0;
  for (long i = 0; i < n; i++) t += x[i] * x[i];
  return s * t;
}
double entry(const double *x, long n, double s) { double d = inner(x, n, s); return d * d + s; }
void inner_reverse(const double *x, double *x_d, long n, double s, double *s_d, double y_d) {
  for (long i = 0; i < n; i++) x_d[i] += 5 * s * y_d;
  *s_d += 7 * x[0] * y_d;
}
"""


def _batched_rule(form: str) -> None:
    """A rule for `inner` with made-up slopes (5 s for each element, 7 x[0] for s), so that its use shows."""
    if form == "foreign":
        foreign("inner", Duplicated[Ptr[f64]], Const, Active[f64], reverse="inner_reverse")
        return

    @rule("inner", x=Duplicated[Ptr[f64]], mode="reverse")
    def _(ctx: Any, x: Any, n: Any, s: Any) -> None:
        with ctx.for_range(n) as i:
            x.d[i] += 5 * s * ctx.result.d
        s.d += 7 * x.saved(n)[0] * ctx.result.d


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize("form", ["ctx", "foreign"])
def test_rules_for_one_sample_hold_in_a_batch(tmp_path: Any, form: str, layout: str) -> None:
    source = tmp_path / "inner.c"
    source.write_text(BATCHED_SOURCE)
    entry = irgrad.load(source).kernel("entry", "f64(f64[n] x, i64 n, f64 s)")
    rng = np.random.default_rng(5)
    with layer():
        _batched_rule(form)
        for samples in (1, 7, 64):
            x, s = rng.normal(size=(samples, 3)), rng.normal(size=samples)
            given = x if layout == "aos" else np.ascontiguousarray(x.T)
            made = batch_grad(entry, wrt=("x", "s"), in_axes={"x": 0 if layout == "aos" else -1, "s": 0}, layout=layout)
            by_x, by_s = made(given, s=s)
            slope = 2 * s * (x * x).sum(axis=1)
            wanted = np.repeat((5 * s * slope)[:, None], 3, axis=1)
            np.testing.assert_allclose(by_x if layout == "aos" else by_x.T, wanted, rtol=1e-12)
            np.testing.assert_allclose(by_s, 7 * x[:, 0] * slope + 1, rtol=1e-12)
