"""check passes right kernels and fails wrong derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.functions.checking import ArgumentCheck, CheckReport


def test_right_kernels_pass() -> None:
    rng = np.random.default_rng(0)
    report = engine.check(sample("energy"), rng.standard_normal((4, 3)), rng.random(4))
    assert report, str(report)
    assert [row.name for row in report.arguments] == ["pos", "mass"]
    assert "the derivatives agree" in str(report)


def test_a_kink_is_reported() -> None:
    kernel = irgrad.load("double f(double x) { return x > 1.0 ? x * x : x; }").kernel("f")
    report = engine.check(kernel, 1.0)  # differences straddle the jump in the slope
    assert report
    assert report.verdict == "differences cannot tell"


def test_nan_never_passes() -> None:
    row = ArgumentCheck("x", 1, 1, 1.0, float("nan"), 0.0, (1e-6, 1e-6))
    assert not CheckReport("f", (row,), 0.0, 1e-6)


def test_nothing_to_check() -> None:
    with pytest.raises(irgrad.ActivityError, match="there is nothing to check"):
        engine.check(sample("count"), np.ones(3))


def test_single_precision_inside_of_a_double_kernel() -> None:
    """The rounding of an f32 intermediate shows in forward against reverse at 1e-9: not a wrong derivative."""
    source = "double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) {\n" \
             "float w = (float)(x[i] * x[i]); s += w * 0.37f * x[i]; } return s; }"
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
    report = engine.check(kernel, np.random.default_rng(0).standard_normal(9))
    assert report, str(report)
    assert all(row.tolerances == (2e-2, 1e-4) for row in report.arguments)
    plain = engine.check(sample("energy"), np.ones((2, 3)) * [[1], [2]], np.ones(2))
    assert all(row.tolerances == (1e-6, 1e-10) for row in plain.arguments)


def test_a_derivative_that_is_no_number_is_explained() -> None:
    """The value is a number, its slope is 0 * inf: the report says so and names the way out, which works."""
    library = irgrad.load("#include <math.h>\ndouble f(double v, double x) { return x * x + sqrt(fmax(v, 0.0)); }")
    report = engine.check(library.kernel("f"), -1.0, 2.0)
    assert not report and report.unbounded and "strong_zero=True" in str(report)
    report = engine.check(library.kernel("f", strong_zero=True), -1.0, 2.0)
    assert report and not report.unbounded and "strong_zero" not in str(report)
    undefined = irgrad.load("#include <math.h>\ndouble f(double v) { return sqrt(v); }").kernel("f")
    assert not engine.check(undefined, -1.0).unbounded, "the value itself is NaN"


def test_an_argument_that_does_not_count() -> None:
    """Its gradient is 0; differences are rounding errors of the value, which is no disagreement."""
    kernel = irgrad.load("double f(double v, double x) { return (x + v) - v * 1.0; }").kernel("f")
    report = engine.check(kernel, 0.1, 1e3 / 3)
    assert report and report.arguments[0].gradient_norm == 0.0, str(report)
    near = irgrad.load("double f(double v, double x) { return x + (v > 0.1000000001 ? 1e-3 * v : 0); }").kernel("f")
    assert engine.check(near, 0.1, 1.0).verdict == "differences cannot tell"  # a jump beside the point


def test_a_value_that_is_no_number() -> None:
    """No disagreement: there is nothing to compare."""
    kernel = irgrad.load("#include <math.h>\ndouble f(double x) { return log(x - 10); }").kernel("f")
    report = engine.check(kernel, 1.0)
    assert not report and report.undefined and "DISAGREE" not in str(report) and "--range LOW HIGH" in str(report)
    report = engine.check(kernel, 11.0)
    assert report and not report.undefined


def test_trees() -> None:
    """A kernel over trees is checked by the leaves of its arguments, all or those of some trees."""
    tree = sample("energy").tree({"at": "pos"}, "mass")
    pos, mass = np.random.default_rng(0).standard_normal((4, 3)), np.arange(1.0, 5.0)
    for wrt, names in ((None, ["pos", "mass"]), (0, ["pos"]), ("mass", ["mass"]), ((1, 0), ["mass", "pos"])):
        report = engine.check(tree, {"at": pos}, mass, wrt=wrt)
        assert report and [row.name for row in report.arguments] == names
    with pytest.raises(irgrad.SignatureError, match="there is no argument 'at'"):
        engine.check(tree, {"at": pos}, mass, wrt="at")


@pytest.mark.parametrize("scale", ["1e290", "1e-200"])
def test_norms_of_large_and_small_gradients(scale: str) -> None:
    kernel = irgrad.load(f"double f(const double *x, long n) {{ return (x[0] + x[n - 1]) * {scale}; }}")
    report = engine.check(kernel.kernel("f", "f64(f64[n] x, i64 n)"), np.array([0.3, 0.6]))
    assert report, str(report)
    assert report.arguments[0].gradient_norm > 0.01 * float(scale)
    assert np.isfinite(report.arguments[0].gradient_norm)


def test_the_error_over_the_step_is_drawn() -> None:
    import matplotlib

    matplotlib.use("Agg")
    kernel = irgrad.load("#include <math.h>\ndouble f(double v, double x) { return sin(3 * x) * exp(v); }").kernel("f")
    report = irgrad.check(kernel, 0.3, 0.7)
    assert report.curves is not None
    for curve in report.curves():
        errors = np.array(curve.errors)
        assert errors[0] > 1e-4 and errors.min() < 1e-8 and 1e-8 < curve.steps[errors.argmin()] < 1e-3
    ax = report.plot()
    assert [line.get_label() for line in ax.lines] == ["v", "x"]
