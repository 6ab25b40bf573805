"""The readings that compute."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from irgrad.rules.expressions.expr import Arg, call, compare, where
from irgrad.rules.expressions.functions import PI, exp, jn, ldexp, powi, sin, sqrt
from irgrad.rules.expressions.readings import evaluate

x = Arg(0)


def test_float_types_are_kept() -> None:
    single = evaluate(sin(x) * 2.0, [np.float32(0.3)], reading="f32")
    assert isinstance(single, np.float32)
    assert single == np.float32(2) * np.float32(math.sin(np.float32(0.3)))
    assert evaluate(sin(x), [np.float64(0.3)]) == math.sin(0.3)


def test_ieee_arithmetic_raises_nothing() -> None:
    zero = np.float64(0.0)
    assert evaluate(1.0 / x, [zero]) == math.inf
    assert math.isnan(evaluate(x / x, [zero]))
    assert evaluate(exp(x), [np.float64(1e4)]) == math.inf


def test_integer_arguments() -> None:
    assert evaluate(powi(x, Arg(1)), [np.float64(2.0), -3]) == 0.125
    assert evaluate(ldexp(1.0, Arg(0)), [-4]) == 0.0625
    assert evaluate(jn(Arg(1), x), [np.float64(1.0), 2]) == pytest.approx(0.1149034849319005)


@pytest.mark.parametrize(
    ("pred", "with_nan", "less", "equal"),
    [("olt", 0, 1, 0), ("ult", 1, 1, 0), ("oeq", 0, 0, 1), ("une", 1, 1, 0), ("uno", 1, 0, 0), ("ord", 0, 1, 1),
     ("oge", 0, 0, 1), ("ugt", 1, 0, 0)],
)  # fmt: skip
def test_predicates(pred: str, with_nan: int, less: int, equal: int) -> None:
    choose = where(compare(pred, x, Arg(1)), 1.0, 0.0)
    for args, want in (((math.nan, 1.0), with_nan), ((1.0, 2.0), less), ((2.0, 2.0), equal)):
        assert evaluate(choose, [np.float64(a) for a in args]) == want


def test_complex_step() -> None:
    got = evaluate(sqrt(x) * exp(x), [0.7 + 1e-30j], reading="complex").imag / 1e-30
    assert got == pytest.approx(math.exp(0.7) * (math.sqrt(0.7) + 0.5 / math.sqrt(0.7)), rel=1e-15)


def test_mpmath_knows_the_real_numbers_behind_constants() -> None:
    with mp.workdps(50):
        assert abs(evaluate(call("mul", PI, x), [mp.mpf(1)], reading="mp") - mp.pi) < mp.mpf("1e-48")
