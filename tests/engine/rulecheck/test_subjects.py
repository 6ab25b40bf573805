"""Subjects of `check_rule`: callers in IR that compute what the function does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from oracle.math_functions import primal
from oracle.rule_checks import exact

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.rulecheck.subjects import sample, subject_of, symbol_of
from irgrad.rules import extern, layer, rows, rule
from irgrad.rules.errors import RuleError


def _subject(what: Any, **options: Any) -> Any:
    given = {"kernel": None, "args": None, "dtype": "f64", "points": 1, "seed": 0, "reference": None, **options}
    return subject_of(what, **given)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("key", "hypot sin complex.mul powi frexp.pair sincos.pair remquo lgamma_r".split())
def test_callers_of_rows_compute_the_function(key: str, dtype: str) -> None:
    subject = _subject(key, dtype=dtype)
    (point,) = subject.points
    got = subject.kernel(*point)
    floats = [v for v in (got if isinstance(got, tuple) else (got,)) if np.asarray(v).dtype.kind == "f"]
    wanted = primal(key, exact([p if isinstance(p, int) else np.float64(p) for p in point]))
    close = 1e-5 if dtype == "f32" else 1e-13
    np.testing.assert_allclose(np.array(floats, float), [float(w) for w in wanted], rtol=close)


def test_callers_of_prototypes_pass_arguments_on() -> None:
    with layer():

        @rule(extern("hypot", "f64(f64 a, f64 b)"))
        def _(a: Any, b: Any) -> Any:
            return a, b

        subject = _subject("hypot")
    assert subject.kernel(3.0, 4.0) == 5.0
    assert subject.rule_text.startswith("hypot(...) at test_subjects.py:")


def test_spellings_that_the_process_has() -> None:
    assert symbol_of(rows()["sin"], "f32") == "sinf"
    assert symbol_of(rows()["powi"], "f64") in ("__powidf2", "llvm.powi.f64")
    assert symbol_of(rows()["maximum"], "f64") in ("fmaximum", "llvm.maximum.f64")


def test_arguments_come_from_the_domain() -> None:
    kernel = Kernel("define double @f(double %x) {\n ret double %x\n}\n", "f", "f64(f64 x)")
    drawn = [float(sample(kernel, random.Random(k), rows()["acosh"])[0]) for k in range(20)]
    assert min(drawn) > 1.0
    assert max(drawn) < 9.0
    assert len(set(drawn)) == 20


def test_functions_without_float_results_cannot_be_called() -> None:
    with pytest.raises(RuleError, match="it has no float result"):
        _subject("to_integer")
