"""What the source promises of a loop, in metadata as LLVM keeps it."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.control.promises import (
    WORKSHARING,
    has_sections,
    is_worksharing,
    not_promised,
    without_sections,
    worksharing_loops,
)
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8, !llvm.access.group GROUP
  %s = call double @llvm.sin.f64(double %v)
  store double %s, ptr %p, align 8, !llvm.access.group !1
  %next = add nuw nsw i64 %i, 1
  %more = icmp eq i64 %next, %n
  br i1 %more, label %done, label %loop, !llvm.loop !3
done:
  ret void
}
declare double @llvm.sin.f64(double)
!1 = distinct !{}
!2 = distinct !{}
!3 = distinct !{!3, !4}
!4 = !{!"llvm.loop.parallel_accesses", !1}
!5 = !{!1, !2}
"""
OTHER = "an access in it is not among those that the source promises to be independent"
ATOMIC = "it has atomic operations"
NOTHING = "nothing says that its iterations are independent"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT.replace("GROUP", "!1"), ""),
        (TEXT.replace("GROUP", "!5"), ""),  # of two groups, one of which is the loop's
        (TEXT.replace("GROUP", "!2"), OTHER),
        (TEXT.replace(", !llvm.access.group GROUP", ""), OTHER),
        (TEXT.replace("GROUP", "!1").replace("@llvm.sin.f64", "@other"), OTHER),  # a call that may write anything
        (TEXT.replace("GROUP", "!1").replace(", !llvm.loop !3", ""), NOTHING),
        (TEXT.replace("GROUP", "!1").replace("parallel_accesses", "mustprogress"), NOTHING),
    ],
)
def test_every_access_has_to_be_promised(text: str, why: str) -> None:
    module = read(text)
    (loop,) = get(Loops, module.functions["f"]).all
    assert not_promised(module, loop) == why


@pytest.mark.parametrize(
    ("rows", "more"),
    [
        ("%a = atomicrmw fadd ptr %x, double %s monotonic, align 8, !llvm.access.group !1", ""),
        ("fence seq_cst", ""),
        ("call void @adds(ptr %x), !llvm.access.group !1",
         "define void @adds(ptr %x) {\n  %a = load atomic i64, ptr %x acquire, align 8\n  ret void\n}\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("node", ["llvm.loop.parallel_accesses", WORKSHARING])
def test_atomic_operations_stay_with_one_thread(rows: str, more: str, node: str) -> None:
    """Derivatives take them apart."""
    text = TEXT.replace("GROUP", "!1").replace('"llvm.loop.parallel_accesses"', f'"{node}"')
    module = read(more + text.replace("  %next = add", f"  {rows}\n  %next = add"))
    (loop,) = get(Loops, module.functions["f"]).all
    assert not_promised(module, loop) == ATOMIC


def test_worksharing_loops_have_a_node() -> None:
    text = TEXT.replace("GROUP", "!2").replace('"llvm.loop.parallel_accesses", !1', f'"{WORKSHARING}"')
    module = read(text)
    (loop,) = get(Loops, module.functions["f"]).all
    assert not_promised(module, loop) == "" and is_worksharing(module, loop) and worksharing_loops(text) == ["!3"]
    assert worksharing_loops(TEXT) == []


SECTIONS = """
define void @f(ptr %p, i64 %n) {
entry:
  br label %one
one:
  %i = phi i64 [ 0, %entry ], [ %j, %one ]
  fence syncscope("singlethread") acquire
  store i64 %i, ptr %p
  fence syncscope("singlethread") release
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %one, label %two, !llvm.loop !0
two:
  %k = phi i64 [ 0, %one ], [ %l, %two ]
  %l = add i64 %k, 1
  %d = icmp slt i64 %l, %n
  br i1 %d, label %two, label %exit, !llvm.loop !1
exit:
  ret void
}
!0 = distinct !{!0, !2, !3, !4}
!1 = distinct !{!1, !2, !3}
!2 = !{!"irgrad.loop.worksharing"}
!3 = !{!"irgrad.loop.shared_memory"}
!4 = !{!"irgrad.loop.sections"}
"""


def test_without_sections_a_loop_that_has_some_promises_nothing() -> None:
    module = read(SECTIONS, ["f"])
    assert [has_sections(module, loop) for loop in get(Loops, module.functions["f"]).top] == [True, False]
    alone = without_sections(SECTIONS)
    assert "fence" not in alone
    module = read(alone, ["f"])
    assert [is_worksharing(module, loop) for loop in get(Loops, module.functions["f"]).top] == [False, True]
    plain = SECTIONS.replace(", !4}", "}").replace('!4 = !{!"irgrad.loop.sections"}\n', "")
    assert worksharing_loops(without_sections(plain)) == worksharing_loops(plain)
