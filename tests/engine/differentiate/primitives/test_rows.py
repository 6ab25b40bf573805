"""Rows of the rule tables applied to instructions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from analysed import facts_of
from handwritten.made import OUT, gradient, make

import irgrad
from irgrad import engine
from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.primitives.rows import libm_cost, pure_call
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstFloat, Instruction, Value

TEXT = """
declare double @sin(double)
declare double @mystery(double)
declare double @llvm.exp.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @lgamma_r(double, ptr)
declare i32 @rand()
define void @f(ptr %p, ptr %sign) {
  %x = load double, ptr %p
  %mul = fmul double %x, %x
  %frem = frem double %x, 3.0
  %sin = call double @sin(double %x)
  %exp = call double @llvm.exp.f64(double %x)
  %abs = call double @llvm.fabs.f64(double %x)
  %root = call double @llvm.sqrt.f64(double %x)
  %mystery = call double @mystery(double %x)
  %gamma = call double @lgamma_r(double %x, ptr %sign)
  %rand = call i32 @rand()
  store double %mul, ptr %p
  ret void
}
"""

POWER = """
declare double @llvm.pow.f64(double, double)
define void @f(ptr %x, ptr %o) {
  %p = getelementptr double, ptr %x, i64 1
  %a = load double, ptr %x
  %b = load double, ptr %p
  %v = call double @llvm.pow.f64(double %a, double %b)
  store double %v, ptr %o
  ret void
}
"""


def _named() -> tuple[Unit, dict[str, Instruction]]:
    facts = facts_of(TEXT, "f", {0})
    unit = Unit(facts.module, facts.root, facts, Request("f", "jvp"))
    return unit, {i.name: i for i in facts.root.instructions() if i.name}


def test_only_pure_calls_may_be_repeated() -> None:
    _, named = _named()
    pure = {name for name in ("sin", "exp", "abs", "root", "mystery", "gamma", "rand") if pure_call(named[name])}
    assert pure == {"sin", "exp", "abs", "root"}


def test_costs_are_in_order() -> None:
    _, named = _named()
    assert libm_cost(named["abs"]) < libm_cost(named["root"]) < libm_cost(named["exp"])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_partials_that_are_structurally_zero_never_meet_infinity(mode: str) -> None:
    """d/dx of x * w and of pow(w, 2) with an infinite w: no 0 * inf."""
    source = "void f(double *x, double *w, double *o) { o[0] = x[0] + floor(x[1]) * 0.0 + x[2]; o[1] = x[0] * w[0]; }"
    made = make(source, "f", mode, ["dup", "const", "dup"])
    x, w, o = np.array([1.0, np.inf, 2.0]), np.array([3.0]), np.zeros(2)
    if mode == "forward":
        v, to = np.array([1.0, 0.0, 0.0]), np.zeros(2)
        made(x, v, w, o, to)
        assert to[1] == 3.0
    else:
        dx, do = np.zeros(3), np.array([0.0, 1.0])
        made(x, dx, w, o, do)
        assert dx[0] == 3.0


def test_a_partial_used_twice_is_computed_once() -> None:
    """pow has partials that share subexpressions; the tape-free reverse computes no power more than it needs."""
    source = "void f(double *x, double *o) { *o = pow(x[0], x[1]); }"
    (dx, _), made = gradient(source, "f", "dd", np.array([1.3, 2.4]), OUT)
    np.testing.assert_allclose(dx, [2.4 * 1.3**1.4, 1.3**2.4 * np.log(1.3)], rtol=1e-14)
    calls = [c for c in made.calls("llvm.log") if c.block is not None and c.block.function is made.function]
    assert len(calls) == 1


def test_primal_values_are_read_in_the_order_of_the_arguments() -> None:
    """The derivative of a program must not depend on where in memory its objects happen to lie."""
    seen = []
    facts = facts_of(POWER, "f", {0, 1})
    unit = Unit(facts.module, facts.root, facts, Request("f", "vjp"))
    call = next(i for i in facts.root.instructions() if i.is_call)
    row = application(unit, call)
    assert row is not None

    def operand(number: int) -> Value:
        seen.append(number)
        return row.operands[number]

    one = ConstFloat(ty.F64, 1.0)
    row.adjoints(unit, Builder(facts.root.blocks[0], at=0), one, [True, True], operand, lambda: call)
    assert seen[:2] == [0, 1]  # the slope of the base takes both


def test_a_row_with_two_results_in_one_struct() -> None:
    source = """
    declare { double, double } @llvm.sincos.f64(double)
    define void @f(ptr %x, ptr %o) {
      %v = load double, ptr %x
      %both = call { double, double } @llvm.sincos.f64(double %v)
      %s = extractvalue { double, double } %both, 0
      %c = extractvalue { double, double } %both, 1
      %r = fdiv double %s, %c
      store double %r, ptr %o
      ret void
    }"""
    for x in (0.3, 1.1):
        (dx, _), _made = gradient(source, "f", "dd", np.array([x]), OUT)
        np.testing.assert_allclose(dx[0], 1 / np.cos(x) ** 2, rtol=1e-14)


@pytest.mark.parametrize(("strict", "word", "divisions"), [(False, "ddd", 2), (False, "cdd", 2), (True, "ddd", 3)])
def test_both_slopes_of_a_quotient_share_its_reciprocal(strict: bool, word: str, divisions: int) -> None:
    source = "void f(double *x, double *y, double *o) { *o = x[0] / y[0]; }"
    for x, y in ((3.0, -2.0), (1e300, 1e200), (1e-300, 3e-300), (2.0, 1.7e308), (0.0, 3.0)):
        found, made = gradient(source, "f", word, np.array([x]), np.array([y]), OUT, strict_fp=strict, discard=[2])
        want = [1 / y, -(x / y) / y][word.count("c") :]
        np.testing.assert_allclose([dx[0] for dx in found[: len(want)]], want, rtol=1e-15)
    assert sum(i.opcode == "fdiv" for i in made.function.instructions()) == divisions  # one is the quotient itself


CLIPPED = """#include <math.h>
double clipped(double v, double x) { return x * x + sqrt(fmax(v, 0.0)) + sqrt(fdim(v, 0.0)); }
double scaled(double v, double t) { return sqrt(fmax(v, 0.0) * t) + t; }
double roots(const double *v, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += sqrt(fmax(v[i], 0.0));
    return s;
}
float single(float v, float x) { return x + sqrtf(fminf(fmaxf(v, 0.0f), 9.0f)); }
"""


@pytest.fixture(scope="module")
def clipped() -> Any:
    return irgrad.load(CLIPPED)


def test_the_argument_that_was_not_taken_has_no_adjoint(clipped: Any) -> None:
    """The slope of sqrt at 0 is infinite, and goes nowhere; at the tie it does go to v."""
    assert engine.grad(clipped.kernel("clipped"), argnums=(0, 1))(-1.0, 3.0) == (0.0, 6.0)
    assert engine.grad(clipped.kernel("clipped"), argnums=0)(4.0, 3.0) == 0.5
    assert engine.grad(clipped.kernel("clipped"), argnums=0)(0.0, 3.0) == np.inf
    assert engine.grad(clipped.kernel("single"), argnums=0)(np.float32(-1), np.float32(1)) == 0.0
    assert engine.grad(clipped.kernel("single"), argnums=0)(np.float32(16), np.float32(1)) == 0.0
    roots = clipped.kernel("roots", "f64(f64[n] v, i64 n)")
    v = np.array([-1.0, 4.0, -2.0, 1.0, 0.25, -3.0, 9.0, -4.0, -5.0])
    want = np.where(v > 0, 0.5 / np.sqrt(np.abs(v)), 0.0)
    np.testing.assert_allclose(engine.grad(roots)(v), want, rtol=1e-15)
    np.testing.assert_allclose(engine.batch_grad(roots)(np.stack([v, v])), [want, want], rtol=1e-15)
    pulled = engine.multi_vjp(roots, v)[1](np.array([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(pulled[0], np.outer([1.0, -2.0, 3.0], want), rtol=1e-15)


@pytest.mark.parametrize("width", [1, 3])
def test_strong_zero(clipped: Any, width: int) -> None:
    """0 * inf is NaN unless it is asked for: zero tangents, zero slopes, in both modes, twice, in lanes."""
    plain, strong = clipped.kernel("scaled"), clipped.kernel("scaled", strong_zero=True)
    assert np.isnan(engine.grad(plain, argnums=1)(-1.0, 2.0))
    assert engine.grad(strong, argnums=(0, 1))(-1.0, 2.0) == (0.0, 1.0)
    values, tangents = engine.multi_jvp(strong, (-1.0, 2.0), (np.arange(width) * 1.0, np.arange(width) + 1.0))
    assert values == 2.0 and (tangents == np.arange(width) + 1.0).all()
    assert np.isnan(engine.jvp(plain, (-1.0, 2.0), (0.0, 1.0))[1])
    for kernel in (plain, strong):
        np.testing.assert_allclose(engine.grad(kernel, argnums=(0, 1))(4.0, 9.0), (0.75, 1 / 3 + 1), rtol=1e-15)
        np.testing.assert_allclose(engine.hessian(kernel, argnums=0)(4.0, 9.0), -0.25 * 3 / 8, rtol=1e-14)
    assert (engine.hessian(strong, argnums=1)(-1.0, 2.0)) == 0.0
    assert np.isnan(engine.jvp(strong, (-1.0, 2.0), (0.0, np.nan))[1]), "a NaN is not taken for an infinity"
