"""Questions, and what is known when they are answered; plans as text."""

from __future__ import annotations

import re

import pytest
from explained import kernel

import irgrad
from irgrad.engine import explain, explain_plan
from irgrad.engine.report.derivation import DERIVATIVES, derivation_of, question_of
from irgrad.rules import layer, rule
from irgrad.rules.errors import ActivityError, IRGradError, SignatureError

KEPT = """
#include <math.h>
double step(double a, double s) { return sin(s * a); }
__attribute__((noinline)) double steps(const double *x, double s, long n) {
    for (long i = 0; i < n; i++) s = step(x[0], s) + exp(s);
    return s;
}
double entry(const double *x, long n) {
    double t = 0;
    for (long k = 1; k < n; k++) t += steps(x, t, k);
    return t;
}
"""


def test_what_the_reverse_sweep_keeps() -> None:
    entry = irgrad.load(KEPT).kernel("entry", "f64(f64[1] x, i64 n)")
    plans = dict(plan.split("\n", 1) for plan in explain_plan(entry).split("\n\n"))
    assert plans.keys() == {"tape of entry.normal", "tape of steps"}
    assert re.search(r"kept +tape of .* = steps .*: ptr, array over", plans["tape of entry.normal"])
    assert "double, array over" in plans["tape of steps"]


def test_a_rule_decides_what_is_kept() -> None:
    entry = irgrad.load(KEPT).kernel("entry", "f64(f64[1] x, i64 n)")
    with layer("here"):

        @rule("step")
        def _(a, s):  # type: ignore[no-untyped-def]
            return s, a

        text = explain_plan(entry)
    assert "llvm.sin" not in text
    assert "llvm.sin" in explain_plan(entry)


def test_questions() -> None:
    nested = kernel("nested")
    assert question_of(nested, "vjp", None).wrt == ("x", "w")
    assert question_of(nested, "grad", None).wrt == ("x",)
    assert question_of(nested, "jvp", 1).wrt == ("w",)
    assert question_of(nested, "jvp", "w").forward
    assert question_of(nested, "grad", "w").program.word[-1].derivative == DERIVATIVES["grad"]


def test_questions_that_make_no_sense() -> None:
    nested = kernel("nested")
    with pytest.raises(SignatureError, match="is not known"):
        question_of(nested, "hessian", None)
    with pytest.raises(SignatureError):
        question_of(nested, "vjp", "nothing")
    with pytest.raises(ActivityError, match="has no derivative"):
        question_of(kernel("sometimes"), "vjp", "often")
    with pytest.raises(ActivityError, match="scalar-valued"):
        question_of(kernel("stencil"), "grad", None)
    with pytest.raises(SignatureError, match="not a kernel"):
        question_of("nested", "vjp", None)  # type: ignore[arg-type]


def test_the_root_comes_first_and_forward_mode_has_no_plans() -> None:
    reverse = derivation_of(question_of(kernel("outer"), "vjp", None))
    assert [planned.fn.name for planned in reverse.functions] == ["outer.normal", "inner"]
    assert all(planned.plan is not None for planned in reverse.functions)
    forward = derivation_of(question_of(kernel("outer"), "jvp", None))
    assert [planned.fn.name for planned in forward.functions] == ["outer.normal", "inner"]
    assert not any(planned.plan for planned in forward.functions)


def test_what_the_analyses_refuse_is_raised_in_the_users_words() -> None:
    source = """#include <string.h>
    double f(const double *x) { double d = x[0] * x[1]; float f[2]; memcpy(f, &d, 8); return f[1] * x[1]; }
    """
    with pytest.raises(IRGradError, match="the bits of an active `double` are read as `float`") as caught:
        explain(irgrad.load(source, flags=["-fno-strict-aliasing"]).kernel("f", "f64(f64[2] x)"), lanes=False)
    assert ".normal" not in caught.value.render()
