"""Branches that vary become selects; others stay."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.model import Function
from irgrad.engine.ir.printer import function_to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.widen.if_conversion import flatten
from irgrad.engine.widen.uniformity import Uniformity

HEAD = """
declare double @llvm.exp.f64(double)
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
entry:
  %v = load double, ptr %x
  %k = load i64, ptr %n
"""
TAIL = "  store double %r, ptr %y\n  ret void\n}\n"
VARIES = "  %c = fcmp ogt double %v, 0.0\n"
SHARED = "  %c = icmp sgt i64 %k, 0\n"
TRIANGLE = """  br i1 %c, label %a, label %m
a:
  %e = call double @llvm.exp.f64(double %v)
  br label %m
m:
  %r = phi double [ %e, %a ], [ %v, %entry ]
"""
DIAMOND = """  br i1 %c, label %a, label %b
a:
  %e = fmul double %v, %v
  br label %m
b:
  %g = fadd double %v, 1.0
  br label %m
m:
  %r = phi double [ %e, %a ], [ %g, %b ]
  %same = phi double [ %v, %a ], [ %v, %b ]
"""
PARTS = """  br i1 %c, label %a, label %m
a:
  %p = insertvalue { double, double } poison, double %v, 0
  %e = extractvalue { double, double } %p, 0
  br label %m
m:
  %r = phi double [ %e, %a ], [ %v, %entry ]
"""
NESTED = """  br i1 %c, label %a, label %m
a:
  %d = fcmp olt double %v, 2.0
  br i1 %d, label %b, label %j
b:
  %e = fmul double %v, %v
  br label %j
j:
  %g = phi double [ %e, %b ], [ 3.0, %a ]
  br label %m
m:
  %r = phi double [ %g, %j ], [ %v, %entry ]
"""
STORE = """  br i1 %c, label %a, label %m
a:
  store double 1.0, ptr %y
  br label %m
m:
  %r = phi double [ 1.0, %a ], [ %v, %entry ]
"""


def _flat(condition: str, body: str) -> Function:
    module = read(HEAD + condition + body + TAIL)
    fn = module.functions["f"]
    flatten(fn, lambda: Uniformity(fn, [0, 2], [8, 8, 8], strict=False))
    assert not verify_module(module)
    return fn


@pytest.mark.parametrize(("body", "selects"), [(TRIANGLE, 1), (DIAMOND, 1), (NESTED, 2), (PARTS, 1)])
def test_varying_branches_become_selects(body: str, selects: int) -> None:
    fn = _flat(VARIES, body)
    text = function_to_text(fn)
    assert text.count("= select i1") == selects and "br i1" not in text


@pytest.mark.parametrize(("condition", "body"), [(SHARED, TRIANGLE), (SHARED, DIAMOND), (VARIES, STORE)])
def test_others_stay(condition: str, body: str) -> None:
    assert function_to_text(_flat(condition, body)).count("br i1") == 1
