"""Whether samples and directions share runs, and what refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from explained import kernel

import irgrad
from irgrad.engine import batch_grad, explain, explain_batch, jacrev
from irgrad.engine.functions.strips import OneLane
from irgrad.engine.report.derivation import question_of
from irgrad.engine.report.lane_facts import direction_facts, sample_facts
from irgrad.rules import layer, rule


def test_samples_as_lanes() -> None:
    facts = sample_facts(question_of(kernel("nested"), "grad", "x"))
    assert facts.lanes > 1
    assert not facts.refused
    assert facts.why == "control flow is the same for all samples"


def test_samples_of_straight_code() -> None:
    facts = sample_facts(question_of(kernel("straight"), "grad", None))
    assert facts.lanes == 0  # LLVM decides
    assert not facts.refused


def test_samples_one_after_the_other_for_the_reason_that_a_batch_gives() -> None:
    root = kernel("root")
    facts = sample_facts(question_of(root, "grad", "x"))
    assert facts.refused
    assert "different ways for different samples" in facts.why
    told = explain_batch(batch_grad(root), np.ones((64, 2)))
    assert facts.why in told


def test_directions() -> None:
    assert direction_facts(question_of(kernel("nested"), "jvp", None)).lanes == 16


POINTERS = """
__attribute__((noinline)) void mine(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] * x[i];
}
void f(const double *x, double *y, long n) { mine(x, y, n); }
"""


def test_a_rule_that_takes_one_direction_at_a_time() -> None:
    f = irgrad.load(POINTERS).kernel("f", "void(f64[n] x, out f64[n] y, i64 n)")
    assert not direction_facts(question_of(f, "vjp", None)).refused
    with layer("here"):

        @rule("mine", mode="reverse")
        def _(ctx: Any, x: Any, y: Any, n: Any) -> None:
            with ctx.for_range(n) as i:
                x.d[i] += 2.0 * x.saved(n)[i] * y.d[i]
                y.d[i] = 0.0

        facts = direction_facts(question_of(f, "vjp", None))
        assert facts.refused
        assert "the extent of argument 0 is not known" in facts.why
        with pytest.warns(OneLane):
            jacrev(f, width=4)(np.ones(5))
        assert "directions: one after the other" in str(explain(f))


def test_left_out_on_demand() -> None:
    assert explain(kernel("straight"), lanes=False).lanes == ()
    assert [facts.what for facts in explain(kernel("straight")).lanes] == ["samples of a batch", "directions"]
