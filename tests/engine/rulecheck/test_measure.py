"""Measurements of `check_rule`: references, selection, errors relative to the largest derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.rulecheck.measure import Checker, Line
from irgrad.engine.rulecheck.subjects import subject_of
from irgrad.rules import layer, rule
from irgrad.rules.errors import RuleError

TEXT = """
define double @cube(double %a) {
  %s = fmul double %a, %a
  %r = fmul double %s, %a
  ret double %r
}
"""


def _checker(kernel: Kernel, **options: Any) -> Checker:
    given = {"kernel": None, "args": None, "dtype": "f64", "points": 1, "seed": 0, "reference": None, **options}
    return Checker(subject_of(kernel, **given), np.random.default_rng(0))


def test_the_reference_is_the_body_or_differences() -> None:
    kernel = Kernel(TEXT, "cube", "f64(f64 a)")
    with layer():

        @rule(kernel)
        def _(a: Any) -> Any:
            return 7.0

        checker = _checker(kernel)
        checker.at((2.0,))
        assert checker.reference[1, 0] == 12.0
        np.testing.assert_allclose(checker._differences()[1, 0], 12.0, rtol=1e-9)
        checker.measure("forward", (0,), 1)
        assert checker.lines[0].error == pytest.approx(5 / 12)
        assert checker.selected("reverse", (0,))
        given = _checker(kernel, reference=lambda a: [[np.array([[7.0]])]])
        given.at((2.0,))
        given.measure("reverse", (0,), 1)
        assert given.lines[0].ok


def test_nothing_to_check_without_float_outputs() -> None:
    kernel = Kernel("define i32 @f(double %x) {\n ret i32 1\n}\n", "f", "i32(f64 x)")
    with layer():

        @rule(kernel)
        def _(x: Any) -> Any:
            return 1.0

        with pytest.raises(RuleError, match="there is nothing to check"):
            _checker(kernel)


def test_nan_is_never_within_the_tolerance() -> None:
    assert not Line("x", float("nan"), 1.0).ok
    assert Line("x", 1.0, 1.0).ok
