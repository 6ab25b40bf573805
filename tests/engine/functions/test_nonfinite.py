"""The first place where a number is not finite, and what `check` says about it."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig

SOURCE = r"""
#include <math.h>
double length(const double *v, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += v[i] * v[i];
    return sqrt(s);
}
double logs(double x, double y) {
    double a = log(x);
    float b = y;
    return a + 1 / b;
}
double powers(double x) {
    double y = x > 0 ? x : 0.0;
    return pow(y, 0.5) * 2;
}
static double inner(double x) { return exp(x); }
double ratio(double x, double y) { return inner(x) / inner(y); }
double hidden(double x) { double big = x * 1e308 * 10; return 1 / (1 + big); }
"""
CASES = [
    ("logs", (-1.0, 1.0), "value", "log", 9),
    ("logs", (1.0, 0.0), "value", "fdiv", 11),
    ("powers", (0.0,), "derivative", "sqrt", 15),
    ("ratio", (800.0, 800.0), "value", "exp", 17),
    ("hidden", (2.0,), "value", "fmul", 19),
]


@pytest.fixture(scope="module")
def library() -> ig.Library:
    return ig.load(SOURCE)


@pytest.mark.parametrize(("name", "args", "what", "operation", "line"), CASES)
def test_the_first_place_is_told(
    library: ig.Library, name: str, args: tuple[float, ...], what: str, operation: str, line: int
) -> None:
    found = ig.first_nonfinite(library.kernel(name), *args)
    assert found is not None and not np.isfinite(found.number)
    assert (found.what, found.operation, found.where.split(":")[1]) == (what, operation, str(line))
    assert found.line == SOURCE.splitlines()[line - 1].strip() and found.line in str(found)


def test_arrays_and_finite_numbers(library: ig.Library) -> None:
    length = library.kernel("length", "f64(f64[n] v, i64 n)")
    assert ig.first_nonfinite(length, np.ones(3)) is None
    found = ig.first_nonfinite(length, np.zeros(3))
    assert found is not None and (found.what, found.operation) == ("derivative", "sqrt")
    assert ig.first_nonfinite(library.kernel("logs"), 1.0, 1.0) is None


def test_check_names_the_line_and_says_no_more_than_it_knows(library: ig.Library) -> None:
    slope = str(ig.check(library.kernel("length", "f64(f64[n] v, i64 n)"), np.zeros(3)))
    assert "the derivative of `sqrt` is inf at " in slope and "strong_zero=True" in slope
    value = str(ig.check(library.kernel("logs"), -1.0, 1.0))
    assert "the value of `log` is nan at " in value and "sqrt" not in value and "strong_zero" not in value
    assert "not finite" not in str(ig.check(library.kernel("logs"), 1.0, 1.0))
