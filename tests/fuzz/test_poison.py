"""Derivatives as IR through the interpreter: no poison or undef reaches a result, and results are the compiled ones.

IRGRAD_FUZZ is the number of random kernels as in test_random_kernels.py: a twentieth of them here from C, vectorised by
the compiler in most of WAYS, a fifth vectors with lanes that are not defined. IRGRAD_FUZZ_SEED is the first seed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from oracle.build import to_ir
from oracle.generator import SHAPED
from oracle.undefined import UndefinedUse

import irgrad

from .driver import summary
from .poison import WAYS, Case, interpret, linked, run_c, run_lanes

pytestmark = pytest.mark.long

COUNT = int(os.environ.get("IRGRAD_FUZZ", "40"))
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0"))


def _assert_ok(results: list[tuple[Any, Any]]) -> None:
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, f"{summary(results)}\n\n{bad[0][1].detail}\n{bad[0][0].source}"
    assert sum(v.kind == "rejected" for _, v in results) <= max(1, len(results) // 10), summary(results)


@pytest.mark.parametrize("part", range(2))
def test_random_kernels_of_vectors(part: int) -> None:
    size = max(1, COUNT // 10)
    _assert_ok(run_lanes(range(FIRST + part * size, FIRST + (part + 1) * size)))


def test_random_kernels_of_c() -> None:
    _assert_ok(run_c(range(FIRST, FIRST + max(len(WAYS), COUNT // 20))))
    _assert_ok(run_c(range(SHAPED + FIRST, SHAPED + FIRST + max(1, COUNT // 100))))


# -- what is known to have poison in unused lanes ----------------------------------------------------------------------

SQUARES = """
define double @f(double %a, double %x) {
  %1 = insertelement <2 x double> poison, double %x, i64 0
  %2 = insertelement <2 x double> %1, double %a, i64 1
  %m = fmul <2 x double> %2, %2
  %s = shufflevector <2 x double> %m, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
  %p = fmul <2 x double> %m, %s
  %r = extractelement <2 x double> %p, i64 0
  ret double %r
}
"""
KERNELS = r"""
#include <complex.h>
#include <math.h>
typedef struct { double x, y; } V;
static double cross(V a, V b) { return a.x * b.y - a.y * b.x; }
static V times(V a, V b) { V c = {a.x * b.x, a.y * b.y}; return c; }
double f1(const double *q) { double a = q[0] * q[1], b = q[2] * q[3]; return a * b; }
static double h(double a, double x) { return a * x * x; }
double f2(const double *q) { return h(q[0], q[1]) * h(q[0], q[1] + 1); }
double f3(const double *q) { const V *p = (const V *)q; V a = times(p[0], p[1]); return a.x / a.y; }
double f4(const double *q) { const V *p = (const V *)q; V a = times(p[0], p[1]); return sqrt(a.x) * sqrt(a.y); }
double f5(const double *q) { const V *p = (const V *)q; V a = times(p[0], p[1]); return cross(a, p[0]) * a.x * a.y; }
double f6(const double *q) { V d = {q[2] - q[0], q[3] - q[1]}; return exp(-d.x * d.x) * exp(-d.y * d.y); }
double f7(const double *q) { double a = (1 - q[0]) * (1 - q[1]); return a * q[2] * q[3]; }
double f8(const double *q) { V a = {q[0] + 1, q[1] + 1}; return a.x * a.y + (a.x - q[2]) * (a.y - q[3]); }
double f9(const double *q) { double v = sqrt(-q[0]); if (isnan(v)) v = q[0]; return v * v + (q[1] > 9 ? q[1] : log1p(q[2])); }
double f10(const double *q) {
    double s[3] = {0, 0, 0};
    for (int i = 0; i < 9; i++) for (int k = 0; k < 3; k++) s[k] += q[(i + k) & 3] * q[k] / (1 + i);
    return s[0] * s[1] - sqrt(s[2] * s[2] + 1) * s[0];
}
"""  # noqa: E501
POINT = np.array([0.7, 1.3, 0.9, 0.4])


@pytest.mark.parametrize("way", WAYS, ids=lambda w: "".join((w.level, *w.flags, "" if w.preopt else " as it is")))
def test_products_of_lanes(way: Any) -> None:
    text = to_ir(KERNELS, way.level, way.flags)
    library = irgrad.load(text, language="ll", preopt=way.preopt)
    if way.level != "-O0":
        assert re.search(r"poison", text) and re.search(r"<2 x double>", text), "nothing was vectorised"
    for number in range(1, 11):
        case = Case(library.kernel(f"f{number}", "f64(f64[4] q)"), {"q": POINT}, ("q",))
        for name in ("jvp", "jvp_only", "vjp", "pullback"):
            assert not case.compare(name)
        assert not case.compare("pullback", 2)
        assert not case.compare_halves()


FOUND = {
    "the largest of lanes, one of them poison, on the stack": """
  %v = insertelement <2 x double> poison, double %a, i64 0
  %w0 = insertelement <2 x double> poison, double %x, i64 0
  %w = shufflevector <2 x double> %w0, <2 x double> poison, <2 x i32> zeroinitializer
  %m = call <2 x double> @llvm.maxnum.v2f64(<2 x double> %v, <2 x double> %w)
  %p = alloca <2 x double>
  store <2 x double> %m, ptr %p
  %r = load double, ptr %p""",
    "a product of lanes of which one is used, and both are stored": """
  %q = alloca <2 x double>
  store double %a, ptr %q
  %v = load <2 x double>, ptr %q
  %w0 = insertelement <2 x double> poison, double %x, i64 0
  %w = shufflevector <2 x double> %w0, <2 x double> poison, <2 x i32> zeroinitializer
  %m = fmul <2 x double> %v, %w
  %p = alloca <2 x double>
  store <2 x double> %m, ptr %p
  %s = load double, ptr %p
  %e = extractelement <2 x double> %m, i64 0
  %r = fadd double %s, %e""",
    "a product with a poison lane in the heap": """
  %v = insertelement <2 x double> poison, double %a, i64 0
  %w0 = insertelement <2 x double> poison, double %x, i64 0
  %w = shufflevector <2 x double> %w0, <2 x double> poison, <2 x i32> zeroinitializer
  %m = fmul <2 x double> %v, %w
  %p = call ptr @malloc(i64 16)
  store <2 x double> %m, ptr %p
  %r = load double, ptr %p
  call void @free(ptr %p)""",
}


@pytest.mark.parametrize("name", FOUND)
def test_zeros_that_meet_poison(name: str) -> None:
    text = ("declare <2 x double> @llvm.maxnum.v2f64(<2 x double>, <2 x double>)\ndeclare ptr @malloc(i64)\n"
            f"declare void @free(ptr)\ndefine double @f(double %a, double %x) {{{FOUND[name]}\n  ret double %r\n}}")
    kernel = irgrad.load(text, language="ll", preopt=False).kernel("f")
    case = Case(kernel, {"a": 3.0, "x": 2.0}, ("a", "x"))
    for derivative, width in (("jvp", 1), ("vjp", 1), ("pullback", 1), ("pullback", 3)):
        assert not case.compare(derivative, width)


# -- derivatives that are broken on purpose ----------------------------------------------------------------------------


@cache
def _squares() -> tuple[Any, str]:
    """The reverse derivative of SQUARES, and its text."""
    case = Case(irgrad.load(SQUARES, language="ll").kernel("f"), {"a": 3.0, "x": 2.0}, ("a", "x"))
    run = case.run("pullback")
    return run, linked(run.program)


def _without_guard(text: str) -> str:
    """Products with an adjoint that is zero by structure are used."""
    return re.sub(r"select <2 x i1> <i1 true, i1 false>, <2 x double> (%\w+), <2 x double> zeroinitializer",
                  r"fadd <2 x double> \1, zeroinitializer", text)  # fmt: skip


def _other_lane(text: str) -> str:
    """The value of one lane is read from the other one of the shuffle."""
    return text.replace("<2 x i32> <i32 1, i32 poison>", "<2 x i32> <i32 poison, i32 1>")


def _forgets(text: str) -> str:
    """Memory of the derivative does not begin as zero."""
    return re.sub(r"store (?:<2 x )?double>? (?:0\.000000e\+00|zeroinitializer), ptr %v\d+\n", "", text)


@pytest.mark.parametrize("change", [_without_guard, _other_lane], ids=lambda f: f.__name__)
def test_a_broken_derivative_is_reported(change: Callable[[str], str]) -> None:
    run, text = _squares()
    buffers = [buffer.copy() for buffer in run.buffers]
    got = interpret(run.program, buffers, text)
    for slot, a, b in zip(run.program.slots, got, run(), strict=True):
        assert slot.role == "scratch" or np.allclose(a, b, rtol=1e-14)
    broken = change(text)
    assert broken != text
    with pytest.raises(UndefinedUse, match="element 0 of a result in memory is poison"):
        interpret(run.program, buffers, broken)


LOOP = """
#include <math.h>
double f(const double *q, long n) { double s = 1; for (long i = 0; i < n; i++) s = sin(s * q[i]) * exp(s); return s; }
"""


def test_a_variable_that_begins_undefined_is_reported() -> None:
    case = Case(irgrad.load(LOOP).kernel("f", "f64(f64[n] q, i64 n)"), {"q": POINT}, ("q",))
    run = case.run("pullback")
    text = linked(run.program)
    buffers = [buffer.copy() for buffer in run.buffers]
    interpret(run.program, buffers, text)
    assert _forgets(text) != text
    with pytest.raises(UndefinedUse, match="undef"):
        interpret(run.program, buffers, _forgets(text))


CHOICE = """
define double @f(double %a, double %x) {
  %1 = insertelement <2 x double> poison, double %x, i64 0
  %2 = insertelement <2 x double> %1, double %a, i64 1
  %3 = fmul <2 x double> %1, %2
  %c = fcmp ogt <2 x double> %3, splat (double 1.0)
  %s = select <2 x i1> %c, <2 x double> %2, <2 x double> splat (double 1.0)
  %l = extractelement <2 x double> %s, i64 0
  %p = fmul double %l, %a
  ret double %p
}
"""


def test_a_freeze_that_is_missing_is_reported() -> None:
    """A condition that is poison in a lane chooses between zeros: what comes out is poison, though both are zero."""
    case = Case(irgrad.load(CHOICE, language="ll", preopt=False).kernel("f"), {"a": 3.0, "x": 2.0}, ("a", "x"))
    run = case.run("pullback")
    text = linked(run.program)
    buffers = [buffer.copy() for buffer in run.buffers]
    interpret(run.program, buffers, text)
    broken = re.sub(r"freeze <2 x i1> (%[\w.]+)", r"and <2 x i1> \1, splat (i1 true)", text)
    assert broken != text
    with pytest.raises(UndefinedUse, match="element 0 of a result in memory is poison"):
        interpret(run.program, buffers, broken)
