"""check on fifty functions that are hard for differences: no false alarm, and every planted error is found."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.functions.slopes import EVALUATIONS, slope
from irgrad.rules.layers import layer

# (expression in x[0], x[1], x[2], the point)
_SMOOTH = [
    ("cos(x[0]) + exp(1e5 * x[1])", (300.0, 1e-5, 1)), ("x[0] * x[0] + 1e-8 * x[1]", (1e4, 3, 1)),
    ("log(x[0]) + x[1]", (1e-9, 1, 1)), ("sqrt(x[0]) + sqrt(x[1])", (1e-14, 4, 1)), ("1 / x[0] + x[1]", (1e-6, 2, 1)),
    ("sin(1e4 * x[0]) + x[1]", (1, 1, 1)), ("sin(1e3 * x[0]) * x[1]", (2, 1e3, 1)), ("exp(-1e3 * x[0])", (0.01, 1, 1)),
    ("tanh(1e3 * (x[0] - 1))", (1.0003, 1, 1)), ("x[0] / (1e-4 + x[1] * x[1])", (1, 1e-3, 1)),
    ("pow(x[0], 30)", (1.3, 1, 1)), ("x[0] * exp(50 * x[1])", (1, 1, 1)), ("atan(1e5 * x[0])", (1e-6, 1, 1)),
    ("log(1 + exp(100 * x[0]))", (0.001, 1, 1)), ("x[0] * 1e10 + x[1] * x[2]", (1e-10, 1, 1)),
    ("asin(x[0]) + x[1]", (0.9999999, 1, 1)), ("log(1 - x[0])", (0.999999, 1, 1)), ("tan(x[0])", (1.57, 1, 1)),
    ("exp(x[0]) * exp(-x[1])", (30, 30, 1)), ("x[0] * x[1] * x[2]", (1e-8, 1e8, 1)), ("cbrt(x[0])", (1e-12, 1, 1)),
    ("sin(x[0]) / x[0] + x[1]", (1e-3, 1, 1)), ("exp(-x[0] * x[0] * 1e6)", (1e-3, 1, 1)), ("x[0] * x[1]", (0, 2, 1)),
    ("cos(x[0]) + x[1]", (0, 1e6, 1)),
]  # fmt: skip
_ROUGH = [
    *((f"fabs(x[0] - 1) + x[1] * x[1] / {k}", (1 + d, 1, 1)) for k, d in enumerate((0, 1e-3, 1e-7, 1e-10, -1e-12), 1)),
    *((f"fmax(x[0], {k} * x[1])", (k + d, 1, 1)) for k, d in enumerate((0, 1e-4, -1e-6, 1e-9, -1e-11), 1)),
    *((f"(x[0] + {10.0**k}) - {10.0**k} + x[1]", (0.3, 1, 1)) for k in (4, 7, 10, 11, 12)),
    *((f"x[0] * x[0] + 1e-{k} * floor(1e7 * x[0])", (0.7, 1, 1)) for k in (8, 10, 12, 14, 15)),
    *((f"x[0] > {k} ? x[0] * x[0] : {k} * x[0]", (k + d, 1, 1))
      for k, d in enumerate((0, 1e-5, 1e-8, -1e-3, -1e-9), 1)),
    *((f"x[0] + rint(1e{k} * x[0]) / 1e{k} + x[1]", (0.33, 1, 1)) for k in (5, 9, 12)),
    *(("floor(x[0]) + x[1] * x[0]", (10.0**k + 0.5, 1, 1)) for k in (5, 7, 11)),
]  # fmt: skip
_PLANTED = ("1.0001 * 2 * x", "1.001 * 2 * x", "-2 * x", "0 * x", "2 * x + 0.001")


@cache
def _library() -> irgrad.Library:
    rows = [f"double f{k}(const double *x) {{ return {e}; }}" for k, (e, _) in enumerate(_SMOOTH + _ROUGH)]
    return irgrad.load("#include <math.h>\n" + "\n".join(rows))


@pytest.mark.parametrize("number", range(len(_SMOOTH + _ROUGH)))
def test_no_false_alarm(number: int) -> None:
    _, point = (_SMOOTH + _ROUGH)[number]
    report = engine.check(_library().kernel(f"f{number}", "f64(f64[3] x)"), np.array(point, float))
    assert report, str(report)
    if number < len(_SMOOTH):
        assert report.verdict == "the derivatives agree", str(report)


@pytest.mark.parametrize("kind", range(len(_PLANTED)))
def test_planted_errors_are_found(kind: int) -> None:
    """A rule with a wrong partial, which meets one element among many."""
    source = "__attribute__((noinline)) double planted(double x) { return x * x; }\n" \
             "double f(const double *x, long n) { double s = 0;\n" \
             "for (long i = 0; i < n; i++) if (i != 3) s += 1e3 * x[i] * x[i];\n" \
             "return s + planted(x[3]); }"
    with layer():
        irgrad.rule("planted")(eval(f"lambda x: {_PLANTED[kind]}"))  # one partial, as an expression of x
        kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
        point = np.linspace(1, 2, 9)
        point[3] = 5.0
        report = engine.check(kernel, point)
    assert not report
    assert report.verdict == "the derivatives DISAGREE", str(report)


def test_evaluations_are_bounded() -> None:
    calls = []

    def function(x: float) -> tuple[float, float, float]:
        calls.append(x)
        return x, math.sin(x), 1.0

    assert slope(function, 1.0, 1.0, math.cos(1.0), 1e-6, 2.0**-52).confirms(math.cos(1.0), 1e-6)
    assert slope(function, 1.0, 1.0, 2.0, 1e-6, 2.0**-52).contradicts(2.0, 1e-6)
    assert len(calls) <= 2 * EVALUATIONS


@pytest.mark.parametrize("power", range(9, 17))
def test_values_that_move_in_steps(power: int) -> None:
    """(x + 1e15) - 1e15: rounding makes stairs, finer and coarser than the steps; nothing is contradicted."""
    large = 10.0**power
    for x in np.random.default_rng(power).uniform(0.3, 3, 40):
        found = slope(lambda t: (t, (t + large) - large, abs((t + large) - large)), x, x, 1.0, 1e-6, 2.0**-52)
        assert not found.contradicts(1.0, 1e-6), (power, x, found)


def test_one_side_at_the_edge_of_a_domain() -> None:
    """Where the values on one side are NaN, the differences are those to the other; a wrong slope is found."""
    def edge(t: float, sign: float) -> tuple[float, float, float]:
        value = math.exp(sign * t) if sign * t >= 0 else math.nan
        return t, value, abs(value)

    for sign in (1.0, -1.0):
        def function(t: float, sign: float = sign) -> tuple[float, float, float]:
            return edge(t, sign)

        assert slope(function, 0.0, 1.0, sign, 1e-6, 2.0**-52).confirms(sign, 1e-6)
        assert slope(function, 0.0, 1.0, 1.01 * sign, 1e-6, 2.0**-52).contradicts(1.01 * sign, 1e-6)
    kernel = irgrad.load("double f(double x) { return x < 1.0 ? 0.0 / 0.0 : x * x; }").kernel("f")
    assert engine.check(kernel, 1.0).verdict == "the derivatives agree"
