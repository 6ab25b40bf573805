"""Lanes without an adjoint, values that are thrown away: what the analysis says, and gradients that depend on it."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from analysed import facts_of, named

import irgrad
from irgrad import engine
from irgrad.engine.analyses.activity.structural_zeros import StructuralZeros
from irgrad.engine.analyses.control.cfg import Cfg

PRODUCT = """
define double @f(double %a, double %x) {{
  %1 = insertelement <2 x double> poison, double %x, i64 0
  %2 = insertelement <2 x double> %1, double %a, i64 1
  %m = fmul <2 x double> %2, %2
  %s = shufflevector <2 x double> %m, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
  %p = {op}
  %r = extractelement <2 x double> %p, i64 0
  ret double %r
}}
declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)
declare <2 x double> @llvm.pow.v2f64(<2 x double>, <2 x double>)
declare <2 x double> @llvm.maxnum.v2f64(<2 x double>, <2 x double>)
"""


def zeros_of(text: str) -> tuple[Any, StructuralZeros]:
    facts = facts_of(dedent(text), "f", {0, 1})
    return facts.root, StructuralZeros(Cfg(facts.root), facts.activity)


def test_lanes_that_receive_adjoints() -> None:
    fn, zeros = zeros_of("""
    define void @f(ptr %x, ptr %y) {
    entry:
      %a = load <4 x double>, ptr %x
      %b = fmul <4 x double> %a, %a
      %c = shufflevector <4 x double> %b, <4 x double> %a, <2 x i32> <i32 2, i32 5>
      %d = insertelement <2 x double> %c, double 1.0, i64 0
      %e = extractelement <2 x double> %d, i64 1
      %s = extractelement <4 x double> %b, i64 0
      %t = fadd double %s, %e
      %u = fcmp ogt <4 x double> %b, zeroinitializer
      %v = extractelement <4 x i1> %u, i64 3
      %w = select i1 %v, double %t, double 0.0
      store double %w, ptr %y
      ret void
    }""")
    given = {name: zeros.given(named(fn, name)) for name in "abcdestw"}
    assert given == {"a": 0b0011, "b": 0b0001, "c": 0b10, "d": 0b10, "e": 1, "s": 1, "t": 1, "w": 1}
    assert [name for name in "abcd" if zeros.lacking(named(fn, name))] == ["a", "b", "c", "d"]
    assert zeros.conditional(named(fn, "t")) and not zeros.conditional(named(fn, "w"))


def test_lanes_around_a_loop() -> None:
    fn, zeros = zeros_of("""
    define void @f(ptr %x, ptr %y) {
    entry:
      %a = load <2 x double>, ptr %x
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %j, %loop ]
      %s = phi <2 x double> [ zeroinitializer, %entry ], [ %n, %loop ]
      %n = fadd <2 x double> %s, %a
      %j = add i64 %i, 1
      %more = icmp ult i64 %j, 9
      br i1 %more, label %loop, label %out
    out:
      %l = phi <2 x double> [ %n, %loop ]
      %r = extractelement <2 x double> %l, i64 0
      store double %r, ptr %y
      ret void
    }""")
    assert {name: zeros.given(named(fn, name)) for name in "asnl"} == dict.fromkeys("asnl", 1)
    assert not any(zeros.conditional(named(fn, name)) for name in "asnl")


def test_values_that_are_not_always_used() -> None:
    fn, zeros = zeros_of("""
    define void @f(ptr %x, ptr %y) {
    entry:
      %a = load double, ptr %x
      %s = fmul double %a, %a
      %t = fmul double %a, %s
      %u = fadd double %a, 1.0
      %w = fadd double %u, 1.0
      %c = fcmp ogt double %a, 0.0
      br i1 %c, label %yes, label %no
    yes:
      %e = fmul double %t, 2.0
      br label %both
    no:
      store double %w, ptr %y
      br label %both
    both:
      %p = phi double [ %e, %yes ], [ %s, %no ]
      %z = getelementptr double, ptr %y, i64 1
      %q = fadd double %p, %u
      store double %q, ptr %z
      ret void
    }""")
    found = {name for name in "stuwepq" if zeros.conditional(named(fn, name))}
    assert found == {"s", "t", "w"}, "%s by one edge and one block, %t and %w in one block each; %u behind both"


def test_lanes_that_are_poison() -> None:
    fn, zeros = zeros_of("""
    define void @f(ptr %x, ptr %y) {
    entry:
      %a = load <2 x double>, ptr %x
      %s = shufflevector <2 x double> %a, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
      %m = fmul <2 x double> %a, %s
      %n = fneg <2 x double> %m
      %i = insertelement <2 x double> %n, double 1.0, i64 1
      %u = fadd <2 x double> %a, undef
      store <2 x double> %n, ptr %y
      store <2 x double> %i, ptr %y
      store <2 x double> %u, ptr %y
      ret void
    }""")
    given = {name: zeros.given(named(fn, name)) for name in "asmniu"}
    assert given == {"a": 3, "s": 1, "m": 1, "n": 1, "i": 3, "u": 3}


def test_one_lane_that_is_not_always_used() -> None:
    fn, zeros = zeros_of("""
    define void @f(ptr %x, ptr %y) {
    entry:
      %v = alloca <2 x double>
      %a = load <2 x double>, ptr %x
      %s = fmul <2 x double> %a, %a
      store <2 x double> %s, ptr %v
      %l = load double, ptr %v
      %s1 = extractelement <2 x double> %s, i64 1
      %t = fmul <2 x double> %a, %a
      store <2 x double> %t, ptr %v
      %t0 = extractelement <2 x double> %t, i64 0
      %t1 = extractelement <2 x double> %t, i64 1
      %u = fmul double %s1, %s1
      %w = insertelement <2 x double> %t, double %u, i64 1
      %w0 = extractelement <2 x double> %w, i64 0
      %p = fadd double %s1, %w0
      %q = fadd double %t0, %t1
      %k = fadd double %p, %l
      %r = fadd double %k, %q
      store double %r, ptr %y
      ret void
    }""")
    found = {name for name in "stuwr" if zeros.conditional(named(fn, name))}
    assert found == {"s", "u"}, "a lane of %s is only in a variable, both of %t are used, %u is in a lane of no use"


@pytest.mark.parametrize(("op", "want"), [
    ("fmul <2 x double> %m, %s", (24.0, 36.0)),
    ("fdiv <2 x double> %m, %s", (-8 / 27, 4 / 9)),
    ("call <2 x double> @llvm.fma.v2f64(<2 x double> %m, <2 x double> %s, <2 x double> %s)", (30.0, 36.0)),
    ("call <2 x double> @llvm.pow.v2f64(<2 x double> %m, <2 x double> %s)", None),
    ("call <2 x double> @llvm.maxnum.v2f64(<2 x double> %m, <2 x double> %s)", (6.0, 0.0)),
    ("select <2 x i1> <i1 true, i1 poison>, <2 x double> %m, <2 x double> %s", (0.0, 4.0)),
], ids=["fmul", "fdiv", "fma", "pow", "max", "select"])  # fmt: skip
def test_lanes_of_poison(op: str, want: tuple[float, float] | None) -> None:
    """f(a, x) = op(x^2, a^2) in lane 0 at a = 3, x = 2; lane 1 of the second operand is poison, of the first a^2."""
    kernel = irgrad.load(PRODUCT.format(op=op), language="ll").kernel("f", "f64(f64 a, f64 x)")
    if want is None:
        want = (9.0**0 * 4.0**9 * np.log(4.0) * 6, 9 * 4.0**8 * 4)
    np.testing.assert_allclose(engine.grad(kernel, argnums=(0, 1))(3.0, 2.0), want, rtol=1e-13)
    for direction, slope in zip(np.eye(2), want, strict=True):
        np.testing.assert_allclose(engine.jvp(kernel, (3.0, 2.0), tuple(direction))[1], slope, rtol=1e-13)
    weights = np.array([1.0, -2.0, 0.5])
    pulled = engine.multi_vjp(kernel, 3.0, 2.0)[1](weights)
    np.testing.assert_allclose(pulled, np.outer(want, weights), rtol=1e-13)


THROWN = r"""
#include <math.h>
double replaced(double x) { double v = sqrt(x); if (isnan(v)) v = -x; return v * v; }
double softplus(double x) { double e = exp(x); return x > 50 ? x : log1p(e); }
double missing(const double *x, const double *w, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) { double p = x[i] * w[i]; s += isnan(x[i]) ? 0 : p; }
    return s;
}
double last(double x, long n) {           /* the root that the last turn computes is not used: its slope is infinite */
    double r = 0, v = 3 * x;
    for (long i = 0; i < n; i++) { r += v; v = sqrt(v - x); x -= v * 0; }
    return r;
}
double ratio(const double *x, long n) { double s = x[1] / x[2]; return x[0] * (x[3] > 0 ? s : 0.); }
"""


@pytest.mark.parametrize("preopt", [True, False])
@pytest.mark.parametrize("opt", [None, "O0", "O2", "O3"])
def test_what_is_thrown_away_has_no_part_in_the_gradient(opt: str | None, preopt: bool) -> None:
    library = irgrad.load(THROWN, opt=opt, preopt=preopt)
    assert engine.grad(library.kernel("replaced"))(-2.0) == -4.0
    assert engine.grad(library.kernel("softplus"))(800.0) == 1.0
    missing = library.kernel("missing", "f64(f64[n] x, f64[n] w, i64 n)")
    x, w = np.array([1.0, np.nan, 2.0] * 5), np.arange(15.0)
    dx, dw = engine.grad(missing, wrt=("x", "w"))(x, w)
    assert dw.tolist() == [1.0, 0.0, 2.0] * 5 and np.isin(dx, [*w, 0.0]).all()
    assert np.isfinite(engine.grad(library.kernel("last", "f64(f64 x, i64 n)"))(0.0, 1))


UNREAD = """
declare double @llvm.sqrt.f64(double)
define double @f(double %a, double %x) {
  %s = call double @llvm.sqrt.f64(double %x)
  %1 = insertelement <2 x double> poison, double %a, i64 0
  %2 = insertelement <2 x double> %1, double %s, i64 1
  %m = fmul <2 x double> %2, %2
  %r = extractelement <2 x double> %m, i64 0
  ret double %r
}
"""


def test_a_number_in_a_lane_that_nothing_reads() -> None:
    """Its slope is infinite, and it has no part in the result."""
    kernel = irgrad.load(UNREAD, language="ll", preopt=False).kernel("f")
    assert engine.grad(kernel, argnums=(0, 1))(3.0, 0.0) == (6.0, 0.0)


@pytest.mark.parametrize("strong", [False, True])
def test_second_derivatives_where_an_adjoint_is_zero_by_chance(strong: bool) -> None:
    """f = x0 (x3 > 0 ? x1 / x2 : 0) at x0 = 0: the adjoint of the quotient is 0, its tangent is not."""
    kernel = irgrad.load(THROWN).kernel("ratio", "f64(f64[n] x, i64 n)", strong_zero=strong)
    x = np.array([0.0, 2.0, 3.0, 5.0])
    want = np.zeros((4, 4))
    want[0, 1] = want[1, 0] = 1 / 3
    want[0, 2] = want[2, 0] = -2 / 9
    np.testing.assert_allclose(engine.hessian(kernel)(x), want, rtol=1e-14)
    v = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(engine.hvp(kernel, (x,), v), want @ v, rtol=1e-14)


@pytest.mark.parametrize("preopt", [True, False])
@pytest.mark.parametrize("test", ["isnan(v)", "isinf(v) || v != v", "!isfinite(v)", "signbit(v) || isnan(v)"])
def test_what_is_only_asked_about_is_thrown_away(test: str, preopt: bool) -> None:
    """The root of a negative number goes into a question alone where another value takes its place."""
    source = f"#include <math.h>\ndouble f(double x) {{ double v = sqrt(x); if ({test}) v = -x; return v * v; }}"
    kernel = irgrad.load(source, preopt=preopt).kernel("f")
    assert engine.grad(kernel)(-2.0) == engine.jvp(kernel, (-2.0,), (1.0,))[1] == -4
    assert engine.grad(kernel)(2.0) == pytest.approx(1.0)
