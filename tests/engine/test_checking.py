"""check passes right kernels and fails wrong derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.checking import ArgumentCheck, CheckReport


def test_right_kernels_pass() -> None:
    rng = np.random.default_rng(0)
    report = engine.check(sample("energy"), rng.standard_normal((4, 3)), rng.random(4))
    assert report, str(report)
    assert [row.name for row in report.arguments] == ["pos", "mass"]
    assert "the derivatives agree" in str(report)


def test_a_kink_is_reported() -> None:
    kernel = irgrad.load("double f(double x) { return x > 1.0 ? x * x : x; }").kernel("f")
    report = engine.check(kernel, 1.0)  # differences straddle the jump in the slope
    assert not report and "WRONG" in str(report) and "DISAGREE" in str(report)


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
