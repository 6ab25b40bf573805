"""Bodies of partials become expressions; what they may not do is said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO
from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.expressions.tracing import trace_partials


def partial(body: Any, x: float) -> float:
    """The partial at a point."""
    return float(evaluate(trace_partials(body, "f", "f", "here", takes_result=False)[0][0], (x,)))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x),
        lambda x: np.where(x > 0.5, np.square(x), np.reciprocal(x)),
        lambda x: np.where((x > 0.1) & ~(x == 0.25) | (x < -5), np.hypot(x, 2.0), 0.0),
        lambda x: np.where(np.logical_and(x >= 0.1, x != 3), np.sin(x) ** 3, 1 - x),
        lambda x: abs(-x) ** 2.5 + (+x) - 3.0 / x + x**-2 + 2**x,
        lambda x: np.maximum(x, 0.3) + np.minimum(x, 0.2) + np.clip(x, 0.0, 1.0) + np.sign(x) + np.heaviside(x, 0.5),
        lambda x: np.logaddexp(x, 1.0) + np.arctan2(x, 2.0) + np.log1p(x) + np.power(x, 1.5) + np.deg2rad(x),
        lambda x: np.float64(2.0) * x + np.float32(0.5) + np.int64(3) * x,
    ],
)
@pytest.mark.parametrize("x", [0.25, 0.7, 3.0])
def test_numpy_means_the_same_on_numbers(body: Any, x: float) -> None:
    assert partial(body, x) == pytest.approx(float(body(np.float64(x))), rel=1e-14)


def test_integers_become_floats() -> None:
    row = trace_partials(lambda n, x: (n + 1) * x / n, "if", "f", "", takes_result=False)
    assert row[0][0] is ZERO
    assert evaluate(row[0][1], (3, 2.0)) == pytest.approx(8.0 / 3)


def test_result_and_zeros() -> None:
    row = trace_partials(lambda a, b, *, y: (a / y, 0), "ff", "f", "", takes_result=True)
    assert row[0][1] is ZERO
    assert evaluate(row[0][0], (3.0, 4.0), (5.0,)) == pytest.approx(0.6)


def _decides(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def test_if_names_where() -> None:
    with pytest.raises(RuleError, match=r"np\.where") as caught:
        trace_partials(_decides, "f", "f", "", takes_result=False)
    assert "test_tracing.py" in caught.value.which
    assert "if x > 0" in caught.value.which


def test_math_module_is_refused() -> None:
    with pytest.raises(RuleError, match="math"):
        trace_partials(lambda x: math.exp(x), "f", "f", "", takes_result=False)


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(RuleError, match="`spacing` is not among"):
        trace_partials(np.spacing, "f", "f", "", takes_result=False)
    with pytest.raises(RuleError, match=r"`np\.sum` is not among"):
        trace_partials(lambda x: np.sum(x), "f", "f", "", takes_result=False)


def test_the_number_of_partials_is_checked() -> None:
    with pytest.raises(RuleError, match="returns 1 partials") as caught:
        trace_partials(lambda a, b: a, "ff", "f", "file.py:3", takes_result=False)
    assert caught.value.where == "file.py:3"


def test_a_body_without_return_is_no_zero() -> None:
    def forgotten(x: Any) -> None:
        2 * x

    with pytest.raises(RuleError, match="the rule for `sq` returns nothing") as caught:
        trace_partials(forgotten, "f", "sq", "here", takes_result=False)
    assert "zero is written as 0" in str(caught.value)
    assert trace_partials(lambda _: 0, "f", "sq", "here", takes_result=False) == ((ZERO,),)


def test_the_number_of_parameters_is_checked() -> None:
    """A body whose first parameter is not named `ctx` is taken for one of partials."""
    with pytest.raises(RuleError, match=r"the body of the rule for `f` takes \(c, x, n\)") as caught:
        trace_partials(lambda c, x, n: None, "pif", "f", "file.py:3", takes_result=False)
    assert "def _(ctx, ...)" in caught.value.fix and caught.value.where == "file.py:3"
    assert caught.value.because == "without `ctx` it gets the numbers of the call: 2"
    assert trace_partials(lambda *a: a[0], "f", "f", "", takes_result=False)
