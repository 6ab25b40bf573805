"""What of an iteration may run at once, and what in the order of the iterations."""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.iteration_parts import Parts, parts_of

LOOP = """
declare double @llvm.sin.f64(double)
define void @f(ptr noalias "irgrad-float" %x, ptr noalias "irgrad-float" %h, ptr noalias "irgrad-float" %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %from = getelementptr double, ptr %x, i64 %i
  %a = load double, ptr %from, align 8
  %b = call double @llvm.sin.f64(double %a)
  %v = call double @llvm.sin.f64(double %b)
  %k = and i64 %i, 7
  %place = getelementptr double, ptr %h, i64 %k
  %old = load double, ptr %place, align 8
  %more = fcmp ogt double %v, %old
  br i1 %more, label %put, label %latch
put:
  store double %v, ptr %place, align 8
  br label %latch
latch:
  %to = getelementptr double, ptr ARRAY, i64 %i
  store double %b, ptr %to, align 8
  %next = add nuw nsw i64 %i, 1
  %c = icmp slt i64 %next, %n
  br i1 %c, label %loop, label %exit
exit:
  ret void
}
"""


def _parts(array: str) -> tuple[Parts, set[str]]:
    module = read(LOOP.replace("ARRAY", array), ["f"])
    fn = module.functions["f"]
    loop = get(Loops, fn).top[0]
    together = [i for i in fn.instructions() if i.name == "old" or (i.opcode == "store" and i.operands[0].name == "v")]
    dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    parts = parts_of(module, fn, loop, dependence, together, [])
    return parts, {i.name or i.opcode for i in parts.ordered}


def test_a_comparison_and_what_it_decides_are_in_order() -> None:
    parts, ordered = _parts("%y")
    assert not parts.refusal
    assert ordered == {"old", "more", "store"}
    assert [value.name for value in parts.kept] == ["v"]
    assert {value.name for value in parts.again} >= {"place", "k"}
    assert not parts.memory


def test_a_store_to_the_same_array_comes_along() -> None:
    parts, _ = _parts("%h")
    assert len([i for i in parts.ordered if i.opcode == "store"]) == 2
    assert {value.name for value in parts.kept} == {"v", "b"}


def test_two_loops_have_to_be_worth_it() -> None:
    module = read(LOOP.replace("ARRAY", "%y").replace("call double @llvm.sin.f64(double %a)", "fneg double %a")
                  .replace("call double @llvm.sin.f64(double %b)", "fneg double %b"), ["f"])  # fmt: skip
    fn = module.functions["f"]
    together = [i for i in fn.instructions() if i.name == "old"]
    dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    parts = parts_of(module, fn, get(Loops, fn).top[0], dependence, together, [])
    assert parts.refusal.endswith("its iterations do too little")
