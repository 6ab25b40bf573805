"""What a copy of an instruction in a derivative keeps."""

from __future__ import annotations

from irgrad.engine.differentiate.shared.copying import clean_call, kept_metadata, shadow_metadata
from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.text.reader import read

TEXT = """
declare double @g(double) nounwind
define double @f(ptr %p) {
  %a = load double, ptr %p, align 8, !tbaa !0, !invariant.load !1
  %b = tail call nnan fastcc double @g(double noundef %a) #7
  %c = notail call double @g(double %b)
  ret double %c
}
!0 = !{!2, !2, i64 0}
!1 = !{}
!2 = !{!"double", !3}
!3 = !{!"root"}
"""


def _code() -> list[Instruction]:
    return list(read(TEXT).functions["f"].instructions())


def test_tail_calls_need_not_hold_in_a_derivative() -> None:
    _, tail, notail, _ = _code()
    kept = clean_call(tail.call)
    assert kept is not None and tail.call is not None and tail.call.tail == "tail"
    assert kept.tail == "" and kept.cc == tail.call.cc and kept.fn_attrs == tail.call.fn_attrs
    kept = clean_call(notail.call)
    assert kept is not None and kept.tail == "notail"
    assert clean_call(None) is None


def test_shadow_memory_has_the_types_of_the_primal_and_no_promises() -> None:
    assert set(shadow_metadata(_code()[0])) == {"tbaa"}


def test_weights_are_kept_of_choices_and_not_of_branches() -> None:
    fn = read("""
define double @f(i1 %c, double %x) {
  %a = select i1 %c, double %x, double 1.0, !prof !0
  br i1 %c, label %one, label %two, !prof !0
one:
  ret double %a
two:
  ret double %x
}
!0 = !{!"branch_weights", i32 9, i32 1}
""").functions["f"]
    choice, branch, *_ = fn.instructions()
    assert kept_metadata(choice) == shadow_metadata(choice) == {"prof": "!0"}
    assert kept_metadata(branch) == {}
