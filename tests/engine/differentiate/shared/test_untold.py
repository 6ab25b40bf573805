"""Calls that may be approximated are those whose values the caller is not told."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of_c
from handwritten.made import HEADER, asked

from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.shared.untold import approximate_calls, free_choices, free_sums
from irgrad.engine.functions.gradients import grad, value_and_grad
from irgrad.engine.ir.model import Instruction
from irgrad.interop.loaders import load

SOURCE = """
NOINLINE static double helper(double v) { return sin(v); }
void f(double *x, double *o) {
    double s = 0;
    for (int i = 0; i < 100; i++) s += log(x[i]);
    o[0] = exp(x[0]);
    x[1] = tan(s) + helper(x[2]);
}
"""


def _unit(discard: tuple[int, ...], strict: bool = False) -> Unit:
    facts = facts_of_c(HEADER + SOURCE, "f", {0, 1})
    request = asked("f", "reverse", ["dup", "dup"], strict_fp=strict, discard=discard)
    return Unit(facts.module, facts.root, facts, request)


def _calls(unit: Unit) -> dict[str, Instruction]:
    return {(i.callee_name or "").removeprefix("llvm.").split(".")[0]: i
            for fn in unit.pointers.functions for i in fn.instructions() if i.is_call and i.type.is_fp}  # fmt: skip


def _free(unit: Unit) -> set[str]:
    approximate_calls(unit)
    return {name for name, call in _calls(unit).items() if "afn" in call.flags}


def test_what_nobody_is_told_may_be_approximated() -> None:
    assert _free(_unit(())) == set()
    assert _free(_unit((1,))) == {"exp"}  # the memory of the other argument is read again
    unit = _unit(())
    assert not free_sums(unit, unit.root)


def test_strict_arithmetic_keeps_every_function() -> None:
    assert _free(_unit((0, 1), strict=True)) == set()
    assert {"exp", "tan", "sin", "log"} <= _free(_unit((0, 1)))


def test_sums_are_free_where_functions_are() -> None:
    unit = _unit((0, 1))
    assert len(free_sums(unit, unit.root)) == 1
    unit = _unit((0, 1), strict=True)
    assert not free_sums(unit, unit.root)


NEAREST = """
#include <math.h>
double nearest(const double *x, const double *c, long n, long k, long d) {
    double total = 0;
    for (long p = 0; p < n; p++) {
        double best = %s;
        for (long j = 0; j < k; j++) {
            double s = 0;
            for (long i = 0; i < d; i++) s += (x[p * d + i] - c[j * d + i]) * (x[p * d + i] - c[j * d + i]);
            best = %s;
        }
        total += best;
    }
    return total;
}
"""
LEAST = ("s < best ? s : best", "s <= best ? s : best", "best > s ? s : best", "s >= best ? best : s",
         "s > best ? best : s", "!(s >= best) ? s : best", "!(best <= s) ? s : best",
         "!(s < best) ? best : s")  # fmt: skip


@pytest.mark.parametrize(("choice", "start"), [
    *((choice, "INFINITY") for choice in LEAST),
    *((choice.translate(str.maketrans("<>", "><")), "-INFINITY") for choice in LEAST),
])  # fmt: skip
def test_extrema_of_such_sums_choose_as_written(choice: str, start: str) -> None:
    """`grad` may choose by one instruction, `value_and_grad` as the source does: ties, and NaN on either side."""
    signature = "f64(f64[n,d] x, f64[k,d] c, i64 n, i64 k, i64 d)"
    kernel = load(NEAREST % (start, choice)).kernel("nearest", signature)
    rng = np.random.default_rng(3)
    x, c = rng.integers(0, 3, size=(40, 3)).astype(float), rng.integers(0, 3, size=(7, 3)).astype(float)
    c[4] = c[2]
    for spoiled in (False, True):
        if spoiled:
            c[3, 1] = np.nan
        _, told = value_and_grad(kernel, wrt=("x", "c"))(x, c)
        for mine, its in zip(grad(kernel, wrt=("x", "c"))(x, c), told, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-13)
        assert spoiled or np.any(told[1])


def test_how_the_extreme_of_a_sum_is_chosen() -> None:
    source = """
    void f(double *x, double *o) {
        double best = 1e9;
        for (int j = 0; j < 100; j++) {
            double s = 0;
            for (int i = 0; i < 100; i++) s += x[100 * j + i];
            best = %s;
        }
        o[0] = best;
    }"""
    for choice, wanted in (("s >= best ? best : s", "olt"), ("s > best ? s : best", "ogt")):
        facts = facts_of_c(HEADER + source % choice, "f", {0, 1})
        sums = {instr for instr in facts.root.instructions() if instr.opcode == "fadd"}
        ((select, (pred, first, second)),) = free_choices(facts.root, sums).items()
        assert pred == wanted and {first, second} == set(select.operands[1:])
        assert not free_choices(facts.root, set())
