"""Which accesses of a worksharing loop may meet those of other iterations."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.text.reader import read
from irgrad.engine.parallel.sections import BEGIN, END
from irgrad.engine.threads.ordered_parts import meeting

LOOP = f"""
declare double @llvm.sin.f64(double)
define void @f(ptr noalias "irgrad-float" %x, ptr noalias "irgrad-float" %h, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr double, ptr %x, i64 %i
  %a = load double, ptr %from, align 8
  {BEGIN}
  %v = call double @llvm.sin.f64(double %a)
  SECTION
  {END}
  MORE
  %next = add nuw nsw i64 %i, 1
  %c = icmp slt i64 %next, %n
  br i1 %c, label %loop, label %exit
exit:
  ret void
}}
"""


@pytest.mark.parametrize(("section", "more", "wanted"), [
    ("store double %v, ptr %h, align 8", "", ["store"]),
    ("", "", []),
    ("", "%o = atomicrmw fadd ptr %h, double %v monotonic, align 8", ["atomicrmw"]),
])  # fmt: skip
def test_meeting(section: str, more: str, wanted: list[str]) -> None:
    module = read(LOOP.replace("SECTION", section).replace("MORE", more), ["f"])
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    found = meeting(Dependence(fn, Pointers(module, fn), Induction(fn)), loop, atomic=True)
    assert found is not None
    assert [i.opcode for i in found] == wanted
    assert any(i.opcode == "fence" for i in fn.instructions()) is bool(section)
