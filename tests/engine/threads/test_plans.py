"""How a team can share a loop: what its iterations do together decides, and nothing is carried out yet."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.iterations import OWN_PLACES
from irgrad.engine.parallel.sections import BEGIN, END
from irgrad.engine.threads.plans import Plan, plan_of

LOOP = """
define void @f(ptr noalias "irgrad-float" %x, ptr noalias "irgrad-float" %y, i64 %n) {
entry:
  %h = alloca [8 x double], align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds double, ptr %x, i64 %i
  %a = load double, ptr %from, align 8
  BODY
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, COUNT
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  %r = load double, ptr %h, align 8
  store double %r, ptr %y, align 8
  ret void
}
!0 = distinct !{!0SAID}
!1 = !{!"irgrad.loop.worksharing"}
!2 = !{!"irgrad.loop.sections"}
"""
OWN = "%to = getelementptr inbounds double, ptr %y, i64 %i\n  store double %a, ptr %to, align 8"
ONE = "store double %a, ptr %y, align 8"
ADDED = """%k = and i64 %i, 7
  %at = getelementptr inbounds double, ptr %h, i64 %k
  %old = atomicrmw fadd ptr %at, double %a monotonic, align 8"""
SECTION = f"""%root = call double @llvm.sqrt.f64(double %a)
  {BEGIN}
  %best = load double, ptr %h, align 8
  %less = fcmp olt double %best, %root
  %new = select i1 %less, double %root, double %best
  store double %new, ptr %h, align 8
  {END}"""


def _plan(body: str, said: str = "", count: str = "%n", *, promised: bool = False) -> tuple[Plan, bool]:
    """The plan of the loop, and whether the function is as it was."""
    text = LOOP.replace("BODY", body).replace("SAID", said).replace("COUNT", count)
    module = read(text + "declare double @llvm.sqrt.f64(double)\n", ["f"])
    fn, before = module.functions["f"], to_text(module)
    return plan_of(module, fn, get(Loops, fn).top[0], promised=promised), to_text(module) == before


def test_independent_iterations_are_shared_and_their_arrays_told() -> None:
    plan, same = _plan(OWN)
    assert same and plan == Plan(worksharing=False, said=plan.said)
    assert len(plan.said) == 2 and all(OWN_PLACES in said for said in plan.said.values())


@pytest.mark.parametrize(("body", "count", "why"), [
    (ONE, "%n", "iterations may meet in memory"),
    (OWN, "10", "it runs 10 times at most"),
])  # fmt: skip
def test_why_one_thread_runs_a_loop(body: str, count: str, why: str) -> None:
    plan, same = _plan(body, count=count)
    assert same and why in plan.why and not plan.said


def test_the_source_promises_more_than_can_be_found() -> None:
    assert not _plan(ONE, ", !1", promised=True)[0].why
    assert "nothing says" in _plan(OWN, promised=True)[0].why  # programs share what is promised only


def test_updates_of_an_array_go_to_copies() -> None:
    plan, same = _plan(ADDED, ", !1")
    assert same and not plan.why and plan.parts is None
    assert [row.opcode for updates in plan.updates for row in updates.rows] == ["atomicrmw"]


def test_sections_stay_in_order() -> None:
    plan, _ = _plan(SECTION, ", !1, !2")
    assert not plan.why and plan.worksharing and not plan.updates
    assert plan.parts is not None and {"store", "load"} <= {i.opcode for i in plan.parts.ordered}
    assert [value.opcode for value in plan.parts.kept] == ["call"]
