"""Which row an instruction has."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Instruction

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


def test_which_row_an_instruction_has() -> None:
    unit, named = _named()
    for name in ("mul", "frem", "sin", "exp", "abs", "root", "gamma"):
        applied = application(unit, named[name])
        assert applied is not None, name
        assert applied.operands[0] is named["x"]
    for name in ("x", "mystery", "rand"):
        assert application(unit, named[name]) is None, name
