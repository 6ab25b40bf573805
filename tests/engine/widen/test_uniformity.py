"""Which values and which memory vary."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.text.reader import read
from irgrad.engine.widen.uniformity import Uniformity, math_intrinsic

TEXT = """
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
entry:
  %a = alloca [4 x double], align 16
  %b = alloca [4 x double], align 16
  %count = load i64, ptr %n
  %shared = sitofp i64 %count to double
  store double %shared, ptr %b
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %s = phi double [ 0.0, %entry ], [ %s1, %loop ]
  %t = phi double [ 0.0, %entry ], [ %t1, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p
  %q = getelementptr double, ptr %a, i64 %i
  store double %v, ptr %q
  %s1 = fadd double %s, %v
  %t1 = fadd double %t, %shared
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %out
out:
  %la = load double, ptr %a
  %lb = load double, ptr %b
  %r = fadd double %la, %s1
  store double %r, ptr %y
  ret void
}
"""


def test_what_varies() -> None:
    fn = read(TEXT).functions["f"]
    facts = Uniformity(fn, [0, 2], [8, 8, 8], strict=True)
    assert {v.name for v in facts.varying} == {"s", "v", "s1", "la", "r"}
    assert {v.name for v in facts.roots} == {"x", "y", "a"}
    names = {i.name: i for i in fn.instructions()}
    assert facts.scaled(names["p"]) and facts.scaled(names["q"]) and not facts.scaled(names["b"])


def test_nothing_varies_without_varying_memory() -> None:
    facts = Uniformity(read(TEXT).functions["f"], [], [8, 8, 8], strict=True)
    assert not facts.varying and not facts.roots


@pytest.mark.parametrize(("name", "known"), [
    ("llvm.sin.f64", True), ("llvm.powi.f64.i32", True), ("llvm.memcpy.p0.p0.i64", False), ("sin", False),
    ("llvm.sqrt", False), ("llvm.ctpop.i64", True), ("llvm.ldexp.f64.i32", False), ("irgrad.strong_mul.f64", True),
    ("llvm.experimental.constrained.sin.f64", False), ("llvm.sincos.f64", False), ("llvm.fptosi.sat.i32.f64", False),
])  # fmt: skip
def test_math_intrinsics(name: str, known: bool) -> None:
    assert math_intrinsic(name) == known
