"""Partials of the user in forward and reverse mode: the derivatives are those of the rule, of the right number type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, hessian, hvp, jvp, value_and_grad
from irgrad.rules import Active, current, f32, f64, layer, linear, opcode, opt_out, rule, stop_gradient
from irgrad.rules.errors import MissingRuleError, RuleError, Unsupported

SOURCE = """
double square(double x) { return x * x; }
float squaref(float x) { return x * x; }
static double hidden(double a, double b, int n) { return a * b + n; }
double outside(double a, double b);
double scaled(double a, int n, double b) { return 3 * a * n - b; }

double total(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += x[i] * square(x[i]);
  return s;
}
float totalf(const float *x, long n) {
  float s = 0;
  for (long i = 0; i < n; i++) s += squaref(x[i]);
  return s;
}
double mixed(const double *x, long n) {
  double s = 1;
  for (long i = 0; i < n; i++) s = hidden(s, x[i], (int)i) + scaled(x[i], 2, s);
  return s;
}
double undefined(double x) { return outside(x, 2 * x); }
"""


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("ruled") / "ruled.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


X = np.array([0.5, -1.25, 2.0])


def test_the_rule_is_used_instead_of_the_body(lib: Any) -> None:
    total = lib.kernel("total", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(grad(total)(X), 3 * X**2)
    with layer():

        @rule("square")
        def _(x: Any, *, y: Any) -> Any:
            return 10 * x + y

        np.testing.assert_allclose(grad(total)(X), X**2 + X * (10 * X + X**2))
        _, tangent = jvp(total, (X,), (np.ones(3),))
        assert tangent == pytest.approx(np.sum(X**2 + X * (10 * X + X**2)))
        value, _ = value_and_grad(total)(X)
        assert value == pytest.approx(np.sum(X**3))
        # the second derivative: the rule is differentiated, and `square` inside of it by the rule again
        second = 2 * (10 * X + X**2) + X * (10 + 10 * X + X**2)
        np.testing.assert_allclose(hvp(total, (X,), np.ones(3)), second)
        np.testing.assert_allclose(hessian(total)(X), np.diag(second))
        with layer():
            opt_out("square")
            np.testing.assert_allclose(grad(total)(X), 3 * X**2)
        np.testing.assert_allclose(grad(total)(X), X**2 + X * (10 * X + X**2))
    np.testing.assert_allclose(grad(total)(X), 3 * X**2)


def test_precision_by_dispatch(lib: Any) -> None:
    totalf = lib.kernel("totalf", "f32(f32[n] x, i64 n)")
    with layer():

        @rule("squaref", Active[f64])
        def _(x: Any) -> Any:
            return 1000 * x

        @rule("squaref", Active[f32])
        def _(x: Any) -> Any:
            return 7 * x

        got = grad(totalf)(X.astype(np.float32))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, 7 * X, rtol=1e-6)


def test_several_arguments_in_a_loop_with_feedback(lib: Any) -> None:
    mixed = lib.kernel("mixed", "f64(f64[n] x, i64 n)")
    expected = grad(mixed)(X)
    with layer():

        @rule("hidden")
        def _(a: Any, b: Any, n: Any) -> Any:
            return b, a

        linear("scaled")
        np.testing.assert_allclose(grad(mixed)(X), expected, rtol=1e-13)
        direction = np.array([0.3, -0.2, 0.9])
        assert jvp(mixed, (X,), (direction,))[1] == pytest.approx(expected @ direction, rel=1e-13)
        with layer():
            stop_gradient("scaled")
            # s <- s x_i + i + const
            assert grad(mixed)(X)[2] == pytest.approx(_state(2), rel=1e-13)


def _state(steps: int) -> float:
    s = 1.0
    for i in range(steps):
        s = s * X[i] + i + 6 * X[i] - s
    return s


def test_a_scoped_rule_does_not_leak(lib: Any, tmp_path: Any) -> None:
    other_source = tmp_path / "other.c"
    other_source.write_text(SOURCE + "\nint another_module;\n")
    other = irgrad.load(other_source).kernel("total", "f64(f64[n] x, i64 n)")
    total, square = lib.kernel("total", "f64(f64[n] x, i64 n)"), lib.kernel("square")
    with layer():

        @rule(square)
        def _(x: Any) -> Any:
            return 100 * x

        np.testing.assert_allclose(grad(total)(X), X**2 + 100 * X**2)
        np.testing.assert_allclose(grad(other)(X), 3 * X**2)
        assert grad(square)(3.0) == 300.0  # the root itself is ruled


def test_opcodes_have_rules(lib: Any) -> None:
    square = lib.kernel("square")
    with layer():

        @rule(opcode("fmul"))
        def _(a: Any, b: Any) -> Any:
            return 2 * b, 2 * a

        assert grad(square)(3.0) == 12.0
    assert grad(square)(3.0) == 6.0


def test_user_rules_stand_above_the_tables(lib: Any, tmp_path: Any) -> None:
    source = tmp_path / "sine.c"
    source.write_text("#include <math.h>\ndouble sine(double x) { return sin(x); }\n")
    sine = irgrad.load(source).kernel("sine")
    with layer():

        @rule("sinf")  # any spelling
        def _(x: Any) -> Any:
            return 5 * np.cos(x)

        assert grad(sine)(0.3) == pytest.approx(5 * np.cos(0.3))
    assert grad(sine)(0.3) == pytest.approx(np.cos(0.3))


def test_a_missing_rule_is_found_once_defined(lib: Any) -> None:
    undefined = lib.kernel("undefined")
    with pytest.raises(MissingRuleError, match="no derivative is known"):
        grad(undefined)(1.0)
    with layer():

        @rule("outside")
        def _(a: Any, b: Any) -> Any:
            return b, a

        assert "outside" in undefined.primal.pullback((0, 1)).ir  # it derives; nothing defines `outside`


def test_wrong_number_of_partials(lib: Any) -> None:
    with layer():

        @rule("square")
        def _(x: Any) -> Any:
            return x, x

        with pytest.raises(RuleError, match="returns 2 partials"):
            grad(lib.kernel("square"))(1.0)


def test_snapshots_are_shared_by_equal_rules(lib: Any) -> None:
    square = lib.kernel("square")
    plain = square.primal.pullback((0, 1))
    with layer():
        assert square.primal.pullback((0, 1)) is plain

        @rule("unrelated")
        def _(x: Any) -> Any:
            return x

        assert square.primal.pullback((0, 1)) is plain

        @rule("square")
        def _(x: Any) -> Any:
            return x

        assert square.primal.pullback((0, 1)) is not plain
        assert current().layers
    assert square.primal.pullback((0, 1)) is plain


EXTRA = """
#include <stdlib.h>
static double state = 1.0;
double *pool_get(long bytes) { return malloc(bytes); }
void pool_put(double *p) { free(p); }
double curve(double x) { return x * x; }
double bump(double x) { state = state + 1.0; return x * x; }
double pooled(const double *x, long n) {
  double *w = pool_get(8 * n), s = 0;
  for (long i = 0; i < n; i++) w[i] = curve(x[i]);
  for (long i = 0; i < n; i++) s += w[i] * w[i];
  pool_put(w);
  return s;
}
double counted(const double *x, long n) {
  double s = 0;
  state = 1.0;
  for (long i = 0; i < n; i++) s += state * bump(x[i]);
  return s;
}
"""


@pytest.fixture(scope="module")
def extra(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("ruled") / "extra.c"
    path.write_text(EXTRA)
    return irgrad.load(path)


def test_allocators_of_the_user(extra: Any) -> None:
    from irgrad.rules import allocator

    pooled = extra.kernel("pooled", "f64(f64[n] x, i64 n)")
    with layer():
        allocator("pool_get", 0, free="pool_put")
        text = pooled.primal.vjp((0, 2)).stage.text
        assert "@pool_get(" in text  # not looked into
        assert "irgrad.tape.alloc" in text  # the shadow of what it returns
        np.testing.assert_allclose(grad(pooled)(X), 4 * X**3)


def test_memory_that_a_ruled_body_changes_is_not_read_again(extra: Any) -> None:
    counted = extra.kernel("counted", "f64(f64[n] x, i64 n)")
    expected = 2 * X * np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(grad(counted)(X), expected)
    for key in ("bump", extra.kernel("bump")):
        with layer():

            @rule(key)
            def _(x: Any) -> Any:
                return 2 * x

            np.testing.assert_allclose(grad(counted)(X), expected)
            assert jvp(counted, (X,), (np.ones(3),))[1] == pytest.approx(expected.sum())


def test_partials_work_at_every_width(lib: Any) -> None:
    from irgrad.engine import jacfwd, jacrev

    total = lib.kernel("total", "f64(f64[n] x, i64 n)")
    with layer():

        @rule("square")
        def _(x: Any) -> Any:
            return 20 * x

        for width in (1, 2, 4):
            np.testing.assert_allclose(jacfwd(total, width=width)(X), X**2 + 20 * X**2)
            np.testing.assert_allclose(jacrev(total, width=width)(X), X**2 + 20 * X**2)


def test_an_alias_shares_the_rules(lib: Any) -> None:
    from irgrad.rules import alias

    with layer():

        @rule("parabola")
        def _(x: Any) -> Any:
            return 20 * x

        alias("square", "parabola")
        assert grad(lib.kernel("square"))(3.0) == 60.0


def test_no_dispatch_when_a_kernel_runs(lib: Any) -> None:
    from irgrad.rules.definitions.dispatch import COUNTS

    square = lib.kernel("square")
    with layer():
        for element in (f32, f64):

            @rule("square", Active[element])
            def _(x: Any) -> Any:
                return 20 * x

        gradient = grad(square)
        assert gradient(3.0) == 60.0
        before = COUNTS["plum"]
        assert [gradient(float(x)) for x in range(5)] == [20.0 * x for x in range(5)]
        assert COUNTS["plum"] == before > 0


def test_functions_of_a_library_by_their_plain_names(tmp_path: Any) -> None:
    source = tmp_path / "cxx.cpp"
    source.write_text("""
namespace model { double curve(double x) { return x * x; } }
extern "C" double entry(double x) { return model::curve(x); }
""")
    library = irgrad.load(source)
    with layer():

        @rule(library.function("curve"))
        def _(x: Any) -> Any:
            return 100 * x

        assert grad(library.kernel("entry"))(2.0) == 200.0


ONTO_ITSELF = """
void cblas_dcopy(int, const double *, int, double *, int);
double f(const double *x, long n) {
  double w[8], s = 0;
  for (long i = 0; i < n; i++) w[i] = x[i] * x[i];
  cblas_dcopy((int)n, w, 1, w, 1);
  for (long i = 0; i < n; i++) s += w[i];
  return s;
}
"""


def test_a_routine_of_blas_that_writes_onto_its_input_is_refused() -> None:
    kernel = irgrad.load(ONTO_ITSELF).kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="`x` and `y` are the same memory"):
        grad(kernel)(X)
