"""Short branches of innermost loops become selects; others stay, and derivatives are the same."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.short_branches import select_branches

LOOP = """
declare double @llvm.fabs.f64(double)
declare double @llvm.fmuladd.f64(double, double, double)
declare double @exp(double)
define double @f(ptr %x, ptr %y, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi double [ 0.0, %entry ], [ %sum, %latch ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr double, ptr %y, i64 %i
  %v = load double, ptr %p
  %c = fcmp ogt double %v, 0.0
{branch}
latch:
{join}
  %next = add i64 %i, 1
  %go = icmp slt i64 %next, %n
  br i1 %go, label %body, label %exit
exit:
  ret double %sum
}}
"""
TRIANGLE = """  br i1 %c, label %a, label %latch
a:
  %w = call double @llvm.fabs.f64(double %v)
  %u = fmul double %w, %v
  br label %latch"""
NESTED = """  br i1 %c, label %a, label %b
a:
  %d = fcmp olt double %v, 2.0
  br i1 %d, label %e, label %j
e:
  %u = fmul double %v, %v
  br label %j
j:
  %k = phi double [ %u, %e ], [ 3.0, %a ]
  br label %latch
b:
  %o = fneg double %v
  br label %latch"""
BOTH = """  br i1 %c, label %a, label %b
a:
  %w = fsub double %s, %v
  %u = call double @llvm.fmuladd.f64(double %v, double %v, double %w)
  br label %latch
b:
  %y1 = fneg double %v
  %z = fadd double %y1, %s
  br label %latch"""
SUM = "  %sum = fadd double %s, %m"
CASES = {
    "a triangle": (TRIANGLE, "  %m = phi double [ %u, %a ], [ %v, %body ]\n" + SUM, 1),
    "a branch in a branch": (NESTED, "  %m = phi double [ %k, %j ], [ %o, %b ]\n" + SUM, 2),
    "a product added up": (TRIANGLE, "  %m = phi double [ %u, %a ], [ %v, %body ]\n"
                           "  %sum = call double @llvm.fmuladd.f64(double %m, double %v, double %s)", 1),
    "a sum in a branch": (TRIANGLE.replace("%u = fmul double %w, %v", "%u = fadd double %s, %w"),
                          "  %sum = phi double [ %u, %a ], [ %s, %body ]", 1),
    "sums in both sides": (BOTH, "  %sum = phi double [ %u, %a ], [ %z, %b ]", 1),
    "a product with a number": (
        TRIANGLE.replace("%u = fmul double %w, %v",
                         "%u = call double @llvm.fmuladd.f64(double %w, double -3.0, double %s)"),
        "  %sum = phi double [ %u, %a ], [ %s, %body ]", 1),
    "an extremum in a branch": (TRIANGLE.replace("%u = fmul double %w, %v", "%d = fcmp ogt double %w, %s\n"
                                                 "  %u = select i1 %d, double %w, double %s"),
                                "  %sum = phi double [ %u, %a ], [ %s, %body ]", 0),
    "a recurrence": (TRIANGLE, "  %m = phi double [ %u, %a ], [ %v, %body ]\n  %sum = fmul double %s, %m", 0),
    "a store in a branch": (TRIANGLE.replace("  br label %latch", "  store double %u, ptr %q\n  br label %latch"),
                            "  %m = phi double [ %u, %a ], [ %v, %body ]\n" + SUM, 0),
    "a load in a branch": (TRIANGLE.replace("%w = call double @llvm.fabs.f64(double %v)", "%w = load double, ptr %q"),
                           "  %m = phi double [ %u, %a ], [ %v, %body ]\n" + SUM, 0),
    "a call in a branch": (TRIANGLE.replace("@llvm.fabs.f64", "@exp"),
                           "  %m = phi double [ %u, %a ], [ %v, %body ]\n" + SUM, 0),
    "a call": (TRIANGLE, "  %m = phi double [ %u, %a ], [ %v, %body ]\n  %x1 = call double @exp(double %m)\n"
               "  %sum = fadd double %s, %x1", 0),
    "a long side": (TRIANGLE.replace("  br label %latch", "".join(
        f"  %u{k} = fadd double %u, {k}.0\n" for k in range(30)) + "  br label %latch"),
                    "  %m = phi double [ %u29, %a ], [ %v, %body ]\n" + SUM, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_branches(name: str) -> None:
    branch, join, number = CASES[name]
    module = read(LOOP.format(branch=branch, join=join))
    fn = module.functions["f"]
    before = len(fn.blocks)
    assert select_branches(fn) == number
    verify_module(module)
    selects = sum(i.opcode == "select" for i in fn.instructions())
    assert selects >= number
    assert (len(fn.blocks) < before) == bool(number)
    assert select_branches(fn) == 0
    if not number:
        return
    double = ctypes.c_double
    texts = [LOOP.format(branch=branch, join=join), to_text(module)]
    old, new = (compile_module(text, ["f"], cache=False).function("f", double, *[ctypes.c_void_p] * 2, ctypes.c_int64)
                for text in texts)  # fmt: skip
    rng = np.random.default_rng(7)
    rows = [rng.normal(size=9), -np.abs(rng.normal(size=5)), np.zeros(3), -np.zeros(4), np.array([-0.0, 2.0, np.inf]),
            np.array([1.0, -np.inf, -3.0]), np.array([-2.0, np.nan, 1.0])]  # fmt: skip
    for x in rows:
        a, b = (f(x.ctypes.data, x.ctypes.data, len(x)) for f in (old, new))
        assert np.float64(a).tobytes() == np.float64(b).tobytes() or (np.isnan(a) and np.isnan(b)), x


LIMITER = """
#include <math.h>
static double minmod(double a, double b) { return a * b <= 0 ? 0 : (fabs(a) < fabs(b) ? a : b); }
double f(const double *u, const double *w, long n) {
    double s = 0;
    for (long i = 1; i + 2 < n; i++) {
        double l = u[i] + 0.5 * minmod(u[i] - u[i - 1], u[i + 1] - u[i]);
        double r = u[i + 1] - 0.5 * minmod(u[i + 1] - u[i], u[i + 2] - u[i + 1]);
        s += w[i] * (l + r > 0 ? 0.5 * l * l : 0.5 * r * r);
    }
    return s;
}"""


def test_the_derivative_of_a_limiter() -> None:
    kernel = irgrad.load(LIMITER).kernel("f", "f64(f64[n] u, f64[n] w, i64 n)")
    rng = np.random.default_rng(2)
    u, w, v, h = rng.normal(size=40), rng.normal(size=40), rng.normal(size=40), 1e-6
    want = [(kernel(u + h * e, w) - kernel(u - h * e, w)) / (2 * h) for e in np.eye(40)]
    got = engine.grad(kernel, argnums=0)(u, w)
    assert got == pytest.approx(want, rel=1e-7, abs=1e-8)
    assert engine.jvp(kernel, (u, w), (v, None))[1] == pytest.approx(got @ v, rel=1e-12)
